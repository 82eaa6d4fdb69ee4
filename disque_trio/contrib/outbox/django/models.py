"""The table of the outbox."""

from typing import ClassVar

from django.db import models

from disque_trio.contrib.outbox.rows import LONGEST_KEY, LONGEST_QUEUE, TABLE


class OutboxRow(models.Model):
    """A job that waits for the relay (`disque_trio.contrib.outbox.rows.Row`)."""

    id = models.BigAutoField(primary_key=True)
    key = models.CharField(max_length=LONGEST_KEY)
    task = models.CharField(max_length=200)
    queue = models.CharField(max_length=LONGEST_QUEUE)
    body = models.BinaryField()
    options = models.TextField()
    created_at = models.FloatField()
    due_at = models.FloatField()
    attempts = models.IntegerField(default=0)
    next_at = models.FloatField(default=0.0)
    error = models.TextField(default="", blank=True)

    class Meta:
        """The name and the order of the table."""

        db_table = TABLE
        ordering: ClassVar = ["id"]

    def __str__(self) -> str:
        return f"{self.task} {self.key}"
