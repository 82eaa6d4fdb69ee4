"""The state of a cluster as its nodes report it to an ordinary client. Plain values for `top` and
for the console of the web port, which use no other source."""
