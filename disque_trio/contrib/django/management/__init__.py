"""Commands of `manage.py`, for projects with `disque_trio.contrib.django` in `INSTALLED_APPS`."""
