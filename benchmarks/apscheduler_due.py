"""APScheduler 3 on SQLite, firing jobs that are due."""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime, timedelta

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

FIRED = threading.Semaphore(0)


def work() -> None:
    FIRED.release()


def rate(count: int, directory: str) -> float:
    """Jobs a second from the moment the scheduler may look until the last function has been called."""
    logging.disable(logging.CRITICAL)
    store = SQLAlchemyJobStore(url=f"sqlite:///{directory}/apscheduler.db")
    scheduler = BackgroundScheduler(
        jobstores={"default": store},
        job_defaults={"misfire_grace_time": None},
        timezone="UTC",
    )
    scheduler.start(paused=True)
    due = datetime.now(UTC) - timedelta(seconds=1)
    for number in range(count):
        trigger = CronTrigger.from_crontab("0 * * * *", "UTC")
        scheduler.add_job("benchmarks.apscheduler_due:work", trigger, id=f"job-{number}", next_run_time=due)
    began = time.perf_counter()
    scheduler.resume()
    for _ in range(count):
        FIRED.acquire()
    took = time.perf_counter() - began
    scheduler.shutdown()
    store.engine.dispose()  # its thread may have opened a connection after the store was shut down
    return count / took
