"""What a Celery application sees of the broker: real workers run the tasks of
application.py, and each test is something that such applications do.

AMQP_URL names the broker. python3 interop_test/suites/celery/test_celery.py
"""

import datetime
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

work = pathlib.Path(tempfile.mkdtemp())
os.environ["SCENARIO_FILES"] = str(work)

from amqp.exceptions import NotFound  # noqa: E402, as application needs the folder
from celery import chain, chord, group  # noqa: E402
from celery.exceptions import ChordError, MaxRetriesExceededError, TaskRevokedError  # noqa: E402
from kombu import Connection, Consumer, Exchange, Producer, Queue  # noqa: E402

import application as scenario  # noqa: E402
from application import app  # noqa: E402

PATIENCE = 120  # seconds to wait for what must come
MAIN = "main@test"


class Worker:
    """A process of Celery's with its pool of processes, in a session of its own."""

    started = []

    def __init__(self, name, queue, application="app", concurrency=2, chatty=True):
        self.log = work / (name + ".log")
        command = [sys.executable, "-m", "celery", "-A", "application:" + application, "worker", "-n", name, "-Q", queue]
        command += ["-c", str(concurrency), "--loglevel", "INFO"]
        command += ["-E"] if chatty else ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=pathlib.Path(__file__).parent, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.started.append(self)

    def wait_ready(self):
        wait_until(lambda: " ready." in self.log.read_text() or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise AssertionError("the worker ended:\n" + self.log.read_text()[-3000:])

    def kill(self):
        """kill is a death without a last word, for the pool too."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE)

    def stop(self):
        """stop lets the worker finish what it is doing."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()


def wait_until(done):
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise AssertionError("waited in vain")
        time.sleep(0.1)


def setUpModule():
    with Connection(scenario.BROKER) as connection:
        scenario.graves(connection.default_channel).declare()
    workers = [
        Worker(MAIN, "scenario,scenario.doomed"),
        Worker("chords@test", "chords", application="files", chatty=False),
    ]
    for worker in workers:
        unittest.addModuleCleanup(worker.stop)
    for worker in workers:
        worker.wait_ready()


class Tasks(unittest.TestCase):
    def test_result(self):
        result = scenario.add.delay(2, 3)
        self.assertEqual(result.get(timeout=PATIENCE), 5)
        self.assertEqual(result.state, "SUCCESS")

    def test_many_results(self):
        results = [scenario.add.delay(i, i) for i in range(200)]
        self.assertEqual([r.get(timeout=PATIENCE) for r in results], [2 * i for i in range(200)])

    def test_large_argument(self):
        self.assertEqual(scenario.size.delay("x" * 3_000_000).get(timeout=PATIENCE), 3_000_000)

    def test_exception_travels_back(self):
        result = scenario.fail.delay("no luck")
        with self.assertRaisesRegex(ValueError, "^no luck$"):
            result.get(timeout=PATIENCE)
        self.assertEqual(result.state, "FAILURE")

    def test_progress_is_told(self):
        states = []
        result = scenario.nap.delay(0.5)
        self.assertEqual(result.get(timeout=PATIENCE, on_message=lambda m: states.append(m["status"])), 0.5)
        self.assertEqual(states, ["STARTED", "SUCCESS"])

    def test_no_result_is_sent_if_none_is_wanted(self):
        scenario.add.apply_async((1, 1), ignore_result=True)
        result = scenario.add.delay(1, 2)
        self.assertEqual(result.get(timeout=PATIENCE), 3)

    def test_retries(self):
        self.assertEqual(scenario.succeed_at.delay(2).get(timeout=PATIENCE), 2)

    def test_retries_run_out(self):
        with self.assertRaises(MaxRetriesExceededError):
            scenario.succeed_at.delay(9).get(timeout=PATIENCE)

    def test_publishing_is_retried_on_a_cut_connection(self):
        with app.connection_for_write() as connection:
            producer = app.amqp.Producer(connection, auto_declare=False)
            connection.ensure_connection()
            producer.channel
            connection.connection.transport.sock.close()
            result = scenario.add.apply_async((4, 4), producer=producer, retry=True)
            self.assertEqual(result.get(timeout=PATIENCE), 8)


class Time(unittest.TestCase):
    def test_countdown(self):
        start = time.monotonic()
        self.assertEqual(scenario.add.apply_async((1, 1), countdown=2).get(timeout=PATIENCE), 2)
        self.assertGreater(time.monotonic() - start, 1.9)

    def test_eta(self):
        eta = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1.5)
        self.assertEqual(scenario.add.apply_async((1, 1), eta=eta).get(timeout=PATIENCE), 2)
        self.assertGreaterEqual(datetime.datetime.now(datetime.timezone.utc), eta)

    def test_waiting_tasks_do_not_hold_up_others(self):
        later = [scenario.add.apply_async((i, 0), countdown=10) for i in range(30)]
        start = time.monotonic()
        self.assertEqual(scenario.add.delay(5, 5).get(timeout=PATIENCE), 10)
        self.assertLess(time.monotonic() - start, 9.9)
        self.assertEqual([r.get(timeout=PATIENCE) for r in later], list(range(30)))

    def test_expired_task_is_revoked(self):
        with self.assertRaises(TaskRevokedError):
            scenario.add.apply_async((1, 1), countdown=1.5, expires=0.5).get(timeout=PATIENCE)

    def test_expired_message_never_comes(self):
        """A task that expires is a message that does, which the broker drops."""
        with Connection(scenario.BROKER) as connection:
            queue = Queue("scenario.stale", channel=connection.default_channel)
            queue.declare()
            self.addCleanup(delete_queue, "scenario.stale")
            producer = Producer(connection.default_channel)
            producer.publish("stale", routing_key=queue.name, expiration=0.1)
            wait_until(lambda: queue.queue_declare(passive=True).message_count == 0)
            self.assertIsNone(queue.get())


def delete_queue(name):
    with Connection(scenario.BROKER) as connection:
        connection.default_channel.queue_delete(name)


class Workflows(unittest.TestCase):
    def test_chain(self):
        result = chain(scenario.add.s(1, 2), scenario.add.s(3), scenario.add.s(4))()
        self.assertEqual(result.get(timeout=PATIENCE), 10)
        self.assertEqual(result.parent.get(timeout=PATIENCE), 6)

    def test_chain_breaks_off(self):
        with self.assertRaisesRegex(ValueError, "^broken$"):
            chain(scenario.fail.si("broken"), scenario.add.s(1))().parent.get(timeout=PATIENCE)

    def test_group(self):
        result = group(scenario.add.s(i, 1) for i in range(30))()
        self.assertEqual(result.get(timeout=PATIENCE), [i + 1 for i in range(30)])
        self.assertTrue(result.successful())

    def test_chunks(self):
        result = scenario.add.chunks(zip(range(20), range(20)), 5)()
        self.assertEqual(result.get(timeout=PATIENCE), [[2 * i for i in range(n, n + 5)] for n in (0, 5, 10, 15)])

    def test_link(self):
        seen = watch("task-succeeded", lambda e: e["result"] == "7781")
        self.assertEqual(scenario.add.apply_async((2, 2), link=scenario.add.s(7777)).get(timeout=PATIENCE), 4)
        seen()

    def test_link_error(self):
        seen = watch("task-succeeded", lambda e: "linked" in e["result"])
        result = scenario.fail.apply_async(("linked",), link_error=scenario.explain.s())
        with self.assertRaises(ValueError):
            result.get(timeout=PATIENCE)
        self.assertTrue([e for e in seen() if result.id in e.get("result", "")])

    def test_chord(self):
        result = chord([scenario.square.s(i) for i in range(10)])(scenario.total.s())
        self.assertEqual(result.get(timeout=PATIENCE), 285)

    def test_chord_with_a_part_that_fails(self):
        with self.assertRaisesRegex((ChordError, ValueError), "a part is missing"):
            chord([scenario.square.s(1), scenario.break_off.si()])(scenario.total.s()).get(timeout=PATIENCE)


class Delivery(unittest.TestCase):
    def test_how_it_came(self):
        got = scenario.delivery.apply_async(priority=7).get(timeout=PATIENCE)
        self.assertEqual(got, {"exchange": "", "routing_key": "scenario", "priority": 7, "redelivered": False})

    def test_requeue_marks_it(self):
        self.assertIs(scenario.insist.delay().get(timeout=PATIENCE), True)

    def test_rejected_task_goes_to_its_grave(self):
        with Connection(scenario.BROKER) as connection:
            graves = scenario.graves(connection.default_channel)
            task = scenario.refuse.apply_async(exchange="scenario.doomed", routing_key="doomed")
            messages = []
            wait_until(lambda: messages.append(graves.get(no_ack=True)) or messages[-1])
            death = messages[-1].headers["x-death"][0]
        self.assertEqual(messages[-1].headers["id"], task.id)
        self.assertEqual(
            {key: death[key] for key in ("queue", "reason", "count", "exchange", "routing-keys")},
            {"queue": "scenario.doomed", "reason": "rejected", "count": 1, "exchange": "scenario.doomed", "routing-keys": ["doomed"]},
        )

    def test_priorities(self):
        """No worker takes these before all are there."""
        order = [3, 9, 0, 5, 9, 1]
        tasks = {scenario.add.apply_async((p, 0), queue="scenario.ranks", priority=p).id: p for p in order}
        self.addCleanup(delete_queue, "scenario.ranks")
        with Connection(scenario.BROKER) as connection:
            queue = Queue("scenario.ranks", channel=connection.default_channel)
            ids = [queue.get(no_ack=True).headers["id"] for _ in order]
        self.assertEqual([tasks[i] for i in ids], sorted(order, reverse=True))
        nines = [i for i, p in tasks.items() if p == 9]
        self.assertEqual([i for i in ids if i in nines], nines)

    def test_purge(self):
        for i in range(7):
            scenario.add.apply_async((i, i), queue="scenario.waste")
        self.addCleanup(delete_queue, "scenario.waste")
        with Connection(scenario.BROKER) as connection:
            queue = Queue("scenario.waste", channel=connection.default_channel)
            self.assertEqual(queue.purge(), 7)
            self.assertIsNone(queue.get())


class RemoteControl(unittest.TestCase):
    def setUp(self):
        self.inspect = app.control.inspect(destination=[MAIN], timeout=PATIENCE)

    def test_ping(self):
        def answered():
            replies = app.control.ping(timeout=2)
            return all({name: {"ok": "pong"}} in replies for name in (MAIN, "chords@test"))

        wait_until(answered)

    def test_ping_one(self):
        self.assertEqual(app.control.ping(destination=[MAIN], timeout=PATIENCE), [{MAIN: {"ok": "pong"}}])

    def test_stats(self):
        stats = self.inspect.stats()[MAIN]
        self.assertEqual(stats["prefetch_count"] % 4, 0)
        self.assertEqual(stats["broker"]["hostname"], "127.0.0.1")

    def test_registered(self):
        self.assertIn("application.add", self.inspect.registered()[MAIN])

    def test_active_queues(self):
        self.assertIn("scenario", [q["name"] for q in self.inspect.active_queues()[MAIN]])

    def test_active(self):
        result = scenario.nap.delay(10)
        wait_until(lambda: result.id in [t["id"] for t in self.inspect.active()[MAIN]])
        self.assertEqual(result.get(timeout=PATIENCE), 10)

    def test_scheduled(self):
        result = scenario.add.apply_async((1, 1), countdown=10)
        wait_until(lambda: result.id in [t["request"]["id"] for t in self.inspect.scheduled()[MAIN]])
        self.assertEqual(result.get(timeout=PATIENCE), 2)

    def test_revoke(self):
        result = scenario.add.apply_async((1, 1), countdown=10)
        result.revoke()
        with self.assertRaises(TaskRevokedError):
            result.get(timeout=PATIENCE)
        self.assertIn(result.id, self.inspect.revoked()[MAIN])

    def test_rate_limit(self):
        reply = app.control.rate_limit("application.size", "1000/s", destination=[MAIN], reply=True, timeout=PATIENCE)
        self.assertEqual(reply, [{MAIN: {"ok": "new rate limit set successfully"}}])

    def test_consumers_come_and_go(self):
        reply = app.control.add_consumer("scenario.other", destination=[MAIN], reply=True, timeout=PATIENCE)
        self.assertEqual(reply, [{MAIN: {"ok": "add consumer scenario.other"}}])
        got = scenario.delivery.apply_async(queue="scenario.other").get(timeout=PATIENCE)
        self.assertEqual(got["routing_key"], "scenario.other")
        reply = app.control.cancel_consumer("scenario.other", destination=[MAIN], reply=True, timeout=PATIENCE)
        self.assertEqual(reply, [{MAIN: {"ok": "no longer consuming from scenario.other"}}])
        with Connection(scenario.BROKER) as connection:
            queue = Queue("scenario.other", channel=connection.default_channel)
            wait_until(lambda: queue.queue_declare(passive=True).consumer_count == 0)
            queue.delete()

    def test_pool_grows_and_shrinks(self):
        for change, processes in (("pool_grow", 3), ("pool_shrink", 2)):
            reply = getattr(app.control, change)(1, destination=[MAIN], reply=True, timeout=PATIENCE)
            self.assertIn("ok", reply[0][MAIN])
            wait_until(lambda: len(self.inspect.stats()[MAIN]["pool"]["processes"]) == processes)


def watch(kind, wanted=lambda event: True):
    """watch collects events from now on; what it returns waits for one of a
    kind that is wanted and gives all events."""
    events, ready, found = [], threading.Event(), threading.Event()

    def note(event):
        events.append(event)
        if event["type"] == kind and wanted(event):
            found.set()

    def receive():
        with app.connection() as connection:
            receiver = app.events.Receiver(connection, handlers={"*": note})
            with receiver.consumer_context() as (own_connection, _, _):
                ready.set()
                end = time.monotonic() + PATIENCE
                while not found.is_set() and time.monotonic() < end:
                    try:
                        own_connection.drain_events(timeout=1)
                    except TimeoutError:
                        pass

    def wait():
        thread.join(PATIENCE + 5)
        if not found.is_set():
            raise AssertionError("no %s among %s" % (kind, sorted({e["type"] for e in events})))
        return events

    thread = threading.Thread(target=receive, daemon=True)
    thread.start()
    ready.wait(PATIENCE)
    return wait


class Events(unittest.TestCase):
    def test_life_of_a_task(self):
        sent = watch("task-sent", lambda e: "(4000, 321)" in e["args"])  # maybe after the others
        seen = watch("task-succeeded", lambda e: "4321" in e["result"])
        result = scenario.add.delay(4000, 321)
        self.assertIn(result.id, [e["uuid"] for e in sent() if e["type"] == "task-sent"])
        kinds = [e["type"] for e in seen() if e.get("uuid") == result.id and e["type"] != "task-sent"]
        self.assertEqual(kinds, ["task-received", "task-started", "task-succeeded"])

    def test_failure(self):
        seen = watch("task-failed", lambda e: "for the record" in e["exception"])
        scenario.fail.delay("for the record")
        seen()

    def test_heartbeat(self):
        events = watch("worker-heartbeat", lambda e: e["hostname"] == MAIN)()
        beats = [e for e in events if e["type"] == "worker-heartbeat" and e["hostname"] == MAIN]
        self.assertEqual(beats[-1]["sw_ident"], "py-celery")


class Kombu(unittest.TestCase):
    def setUp(self):
        self.connection = Connection(scenario.BROKER)
        self.addCleanup(self.connection.release)
        self.channel = self.connection.default_channel

    def test_topic(self):
        exchange = Exchange("scenario.topic", "topic", channel=self.channel)
        queue = Queue("scenario.topic", exchange, routing_key="a.*.#", channel=self.channel, auto_delete=True)
        queue.declare()
        self.addCleanup(exchange(self.channel).delete)
        producer, got = Producer(self.channel, exchange), []
        for key in ("a.b", "b.a", "a", "a.b.c.d"):
            producer.publish({"key": key}, routing_key=key)
        with Consumer(self.channel, [queue], callbacks=[lambda body, message: got.append(body["key"]) or message.ack()]):
            while len(got) < 2:
                self.connection.drain_events(timeout=PATIENCE)
        self.assertEqual(got, ["a.b", "a.b.c.d"])

    def test_simple_queue(self):
        queue = self.connection.SimpleQueue("scenario.simple")
        self.addCleanup(delete_queue, "scenario.simple")
        queue.put({"a": [1, None, "ü"]}, compression="zlib")
        message = queue.get(timeout=PATIENCE)
        self.assertEqual(message.payload, {"a": [1, None, "ü"]})
        message.ack()
        self.assertEqual(len(queue), 0)
        queue.close()

    def test_missing_queue(self):
        with self.assertRaisesRegex(NotFound, "NOT_FOUND - no queue 'scenario.absent' in vhost '/'"):
            self.channel.queue_declare("scenario.absent", passive=True)

    def test_heartbeats_keep_a_connection(self):
        with Connection(scenario.BROKER, heartbeat=2) as connection:
            connection.connect()
            for _ in range(8):
                connection.heartbeat_check(rate=4)
                time.sleep(0.5)
            self.assertTrue(connection.connected)
            connection.default_channel.queue_declare("", exclusive=True)


class Restarts(unittest.TestCase):
    def test_task_of_a_killed_worker_comes_again(self):
        first = Worker("first@test", "scenario.fragile", concurrency=1, chatty=False)
        self.addCleanup(first.stop)
        seen = watch("task-started", lambda e: e["hostname"] == "first@test")
        first.wait_ready()
        app.control.enable_events(destination=["first@test"])
        result = scenario.survive.apply_async((10 * PATIENCE,), queue="scenario.fragile")
        seen()
        first.kill()
        second = Worker("second@test", "scenario.fragile", concurrency=1, chatty=False)
        self.addCleanup(second.stop)
        self.assertIs(result.get(timeout=PATIENCE), True)

    def test_stopped_worker_finishes_one_and_returns_the_rest(self):
        worker = Worker("leaving@test", "scenario.leaving", concurrency=1, chatty=False)
        self.addCleanup(worker.stop)
        worker.wait_ready()
        self.addCleanup(delete_queue, "scenario.leaving")
        results = [scenario.nap.apply_async((10,), queue="scenario.leaving") for _ in range(3)]
        inspect = app.control.inspect(destination=["leaving@test"], timeout=PATIENCE)
        wait_until(lambda: results[0].id in [t["id"] for t in inspect.active()["leaving@test"]])
        worker.stop()
        self.assertEqual(results[0].get(timeout=PATIENCE), 10)
        with Connection(scenario.BROKER) as connection:
            queue = Queue("scenario.leaving", channel=connection.default_channel)
            returned = [queue.get(no_ack=True) for _ in range(2)]
            self.assertEqual([m.headers["id"] for m in returned], [r.id for r in results[1:]])
            self.assertIsNone(queue.get())


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a limit of time must not leave workers behind
    try:
        program = unittest.main(module=__name__, exit=False)
        result = program.result
        failed = len(result.failures) + len(result.errors)
        if failed:
            for log in sorted(work.glob("*.log")):
                print("the end of", log.name, "\n".join(log.read_text().splitlines()[-30:]), sep="\n")
        print(f"{result.testsRun - failed} passed, {failed} failed")
        return 0 if result.wasSuccessful() else 1
    finally:
        for worker in Worker.started:
            worker.kill()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
