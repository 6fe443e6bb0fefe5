"""A small application of Celery's, for test_celery.py to use.

AMQP_URL names the broker, SCENARIO_FILES a folder for results of chords.
"""

import os
import time

from celery import Celery
from celery.exceptions import Reject
from kombu import Exchange, Queue

BROKER = os.environ["AMQP_URL"].replace("amqp://", "pyamqp://", 1)
SETTINGS = {
    "broker_connection_timeout": 10,
    "broker_transport_options": {"confirm_publish": True},
    "result_expires": 120,
    "task_acks_late": True,
    "task_queue_max_priority": 10,
    "task_reject_on_worker_lost": True,
    "task_send_sent_event": True,
    "task_track_started": True,
    "worker_prefetch_multiplier": 4,
    "worker_send_task_events": True,
}

# The result of a task goes back in a message, to a queue of who asked for it.
app = Celery("scenario", broker=BROKER, backend="rpc://")
app.conf.update(
    SETTINGS,
    task_default_queue="scenario",
    task_queues=[
        Queue("scenario"),
        Queue(
            "scenario.doomed",
            Exchange("scenario.doomed", "direct"),
            routing_key="doomed",
            queue_arguments={"x-dead-letter-exchange": "scenario.rejected"},
        ),
    ],
)
# What scenario.doomed rejects ends here.
graves = Queue("scenario.graves", Exchange("scenario.rejected", "fanout"))

# Chords need results that stay until all parts are there: these are files.
files = Celery("chords", broker=BROKER, backend="file://" + os.environ["SCENARIO_FILES"], set_as_current=False)
files.conf.update(SETTINGS, task_default_queue="chords")


@app.task
def add(x, y):
    return x + y


@app.task
def size(text):
    return len(text)


@app.task
def fail(text):
    raise ValueError(text)


@app.task
def explain(request, error, traceback):
    """explain is for link_error, whose result is that of no one."""
    explained.delay(request.id, str(error))


@app.task
def explained(task, error):
    return task, error


@app.task(bind=True, max_retries=3)
def succeed_at(self, attempt):
    if self.request.retries < attempt:
        raise self.retry(countdown=0.2)
    return self.request.retries


@app.task(bind=True)
def delivery(self):
    """delivery tells how the task came."""
    info = self.request.delivery_info
    return {key: info.get(key) for key in ("exchange", "routing_key", "priority", "redelivered")}


@app.task(bind=True)
def insist(self):
    """insist gives its message back once and says whether it came again."""
    if not self.request.delivery_info["redelivered"]:
        raise Reject("once more", requeue=True)
    return True


@app.task
def refuse():
    raise Reject("never", requeue=False)


@app.task(bind=True)
def survive(self, patience):
    """survive is slow, unless it was begun before by a worker that died."""
    if not self.request.delivery_info["redelivered"]:
        time.sleep(patience)
    return self.request.delivery_info["redelivered"]


@app.task
def nap(seconds):
    time.sleep(seconds)
    return seconds


@files.task
def square(x):
    return x * x


@files.task
def total(numbers):
    return sum(numbers)


@files.task
def break_off():
    raise ValueError("a part is missing")
