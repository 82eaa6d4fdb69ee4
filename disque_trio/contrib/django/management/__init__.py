"""Commands of `manage.py`, for projects that have `disque_trio.contrib.django` among their apps."""
