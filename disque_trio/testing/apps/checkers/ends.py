"""A1 and A2: every job that was reported as added ends, and by a run."""

from disque_trio.testing.apps.checkers.history import History, JobRecord


def check(history: History) -> None:
    """Check each job that `enqueue` has reported, and each that has run."""
    replaced = _replaced(history)
    for job in history.jobs.values():
        if not job.is_own and not job.runs:
            continue
        is_known = job.is_own or job.is_step
        name = job.name
        left = [id for id in job.ids if id in history.left]
        acked = [id for id in job.ids if id in history.acked]
        if left:
            text = f"{name} has not ended: {history.left[left[0]][0]}"
            history.violate("A1", text, history.over_at, left[0])
        elif not is_known:
            continue  # reported as not added, but it may have been
        elif not acked and not any(id in history.dead or id in history.expired for id in job.ids):
            text = f"{name} is lost: no node has it, and none says how it ended"
            history.violate("A1", text, history.over_at, job.ids[0])
        elif job.call.cancel_s:
            continue  # cancelled with its flow
        elif acked and job.number not in replaced and not _was_done(job):
            text = f"{name} was acknowledged, and no run of it was done"
            history.violate("A2", text, history.acked[acked[0]], acked[0])


def _was_done(job: JobRecord) -> bool:
    return any(run.outcome == "done" and run.acted_at is not None for run in job.runs)


def _replaced(history: History) -> set[int]:
    """The numbers of jobs that another job may have replaced."""
    return {
        job.number
        for job in history.jobs.values()
        if job.task.conflict == "replace"
        and any(
            other is not job and other.task is job.task and other.plan.key == job.plan.key
            for other in history.jobs.values()
        )
    }
