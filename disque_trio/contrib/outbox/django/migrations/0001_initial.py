"""Creates the table of the outbox."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    """Creates the table."""

    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar = [
        migrations.CreateModel(
            name="OutboxRow",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("key", models.CharField(max_length=255)),
                ("task", models.CharField(max_length=200)),
                ("queue", models.CharField(max_length=255)),
                ("body", models.BinaryField()),
                ("options", models.TextField()),
                ("created_at", models.FloatField()),
                ("due_at", models.FloatField()),
                ("attempts", models.IntegerField(default=0)),
                ("next_at", models.FloatField(default=0.0)),
                ("error", models.TextField(blank=True, default="")),
            ],
            options={"db_table": "disque_outbox", "ordering": ["id"]},
        ),
    ]
