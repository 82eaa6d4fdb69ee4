"""A small shop: orders come by HTTP, and workers charge, invoice and mail them. See README.md."""
