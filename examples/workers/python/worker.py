#!/usr/bin/env python3
"""A Punctual worker in plain Python: nothing but the standard library and HTTP.

    python3 worker.py --server http://127.0.0.1:8700 --queue work

It takes tasks, works on several at a time, asks for more time while it works, and says
how each one ended. SIGTERM or Ctrl-C ends it: what it has begun is finished first, and
what it has not begun is given back, so that nobody waits for it.

A task here is {"greet": "Ana"}, and its result is {"greeting": "Hello, Ana!"}. Write
your own work() and keep the rest.
"""

import argparse
import http.client
import json
import os
import random
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

LONG_POLL = "20s"
# The socket waits a little longer than the server does.
SOCKET_TIMEOUT_S = 30.0


class TryLater(Exception):
    """The task cannot be done now. `delay` says when to try again, such as "30s"."""

    def __init__(self, reason, delay=None):
        super().__init__(reason)
        self.delay = delay


class NeverMind(Exception):
    """The task can never be done, so trying again would be a waste."""


def work(task):
    """Does one task and returns its result: anything that can be written as JSON.

    A task may come twice: its worker may have died before it could say that it was done.
    `task["id"]` is the same each time.
    """
    payload = task.get("payload") or {}
    if "greet" not in payload:
        raise NeverMind("there is nobody to greet")
    if payload["greet"] == "nobody" and task["attempt"] == 1:
        raise TryLater("nobody is there yet", delay="1s")
    if "takes_s" in payload:
        # Longer than the time to run: a heartbeat keeps the task ours.
        threading.Event().wait(payload["takes_s"])
    return {"greeting": f"Hello, {payload['greet']}!"}


class Refused(Exception):
    """The server did not do as asked. `code` never changes its meaning."""

    def __init__(self, status, body):
        try:
            problem = json.loads(body)
        except ValueError:
            problem = {}
        self.status = status
        self.code = problem.get("code", "")
        super().__init__(f"{status} {self.code}: {problem.get('detail', '')}")


class Server:
    """What a worker asks, as docs/protocol.md has it."""

    def __init__(self, url, key=None):
        self.place = urlsplit(url)
        self.headers = {"Content-Type": "application/json"}
        if key:
            self.headers["Authorization"] = f"Bearer {key}"
        # Waits for tasks, and nothing else, so that it can be cut off.
        self.waiting = self.connect()

    def connect(self):
        is_safe = self.place.scheme == "https"
        kind = http.client.HTTPSConnection if is_safe else http.client.HTTPConnection
        return kind(self.place.netloc, timeout=SOCKET_TIMEOUT_S)

    def post(self, connection, path, body):
        try:
            connection.request("POST", path, json.dumps(body), self.headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()  # The next request connects anew.
            raise ConnectionError(f"{type(error).__name__}: {error}") from error
        if answer.status >= 400:
            raise Refused(answer.status, text)
        return json.loads(text)

    def reserve(self, queue, worker, max_tasks, ttr):
        body = {"worker": worker, "max": max_tasks, "wait": LONG_POLL}
        if ttr:
            body["ttr"] = ttr
        return self.post(self.waiting, f"/v1/queues/{queue}/reserve", body)["tasks"]

    def report(self, task, verb, **more):
        connection = self.connect()
        try:
            return self.post(connection, f"/v1/tasks/{task['id']}/{verb}", {"token": task["token"], **more})
        finally:
            connection.close()

    def stop_waiting(self):
        """Cuts off a long poll. What was just being handed out comes again after its time to run."""
        waits_on = self.waiting.sock
        if waits_on:
            try:
                waits_on.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It was closed already.


class Heartbeat:
    """Asks for more time while a task is being worked on, three times as often as needed."""

    def __init__(self, server, task):
        self.server, self.task = server, task
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.beat, daemon=True)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def beat(self):
        ttr = self.task["ttr"]
        while not self.done.wait(seconds(ttr) / 3):
            try:
                self.server.report(self.task, "touch", ttr=ttr)
            except Refused as error:
                return say(f"{self.task['id']}: no more time: {error}")
            except ConnectionError as error:
                say(f"{self.task['id']}: no more time yet: {error}")


def do(server, task):
    """Works on a task, and says how it ended."""
    try:
        with Heartbeat(server, task):
            result = work(task)
    except TryLater as error:
        delay = {"delay": error.delay} if error.delay else {}
        verb, said = "nack", {"error": str(error), **delay}
    except NeverMind as error:
        verb, said = "bury", {"error": str(error)}
    except Exception as error:  # A mistake in work() fails the attempt, not the worker.
        verb, said = "nack", {"error": f"{type(error).__name__}: {error}"}
    else:
        verb, said = "ack", {"result": result}
    report(server, task, verb, said)


def report(server, task, verb, said):
    """Tells the server, and tries again while it cannot be reached and the token is good."""
    for wait_s in (0.1, 0.5, 2, 5):
        try:
            answer = server.report(task, verb, **said)
            return say(f"{task['id']}: {verb} -> {answer['state']}")
        except Refused as error:
            # 409: it is late, and another worker may have the task by now.
            if error.status not in (429, 503):
                return say(f"{task['id']}: {verb}: {error}")
        except ConnectionError as error:
            say(f"{task['id']}: {verb}: {error}")
        threading.Event().wait(wait_s)


def run(server, queue, concurrency, ttr, stop):
    """Takes as many tasks as there are free hands, until it is told to stop."""
    worker = f"python-{os.getpid()}"
    free = threading.Semaphore(concurrency)
    failures = 0
    with ThreadPoolExecutor(concurrency) as hands:
        while not stop.is_set():
            free.acquire()
            hands_free = 1
            while free.acquire(blocking=False):
                hands_free += 1
            try:
                tasks = [] if stop.is_set() else server.reserve(queue, worker, hands_free, ttr)
                failures = 0
            except (Refused, ConnectionError) as error:
                tasks = []
                if not stop.is_set():
                    failures += 1
                    pause_s = min(30, 0.2 * 2**failures) * random.uniform(0.5, 1)
                    say(f"reserve: {error}; again in {pause_s:.1f} s")
                    stop.wait(pause_s)
            for _ in range(hands_free - len(tasks)):
                free.release()
            for task in tasks:
                if stop.is_set():
                    report(server, task, "release", {})
                    free.release()
                else:
                    hands.submit(do, server, task).add_done_callback(lambda _: free.release())
        say("stopping: what has begun is finished first")


def seconds(duration):
    """Seconds of an ISO 8601 duration as the server writes it: PT1M30S, PT0.5S, P2D."""
    days, _, clock = duration.removeprefix("P").partition("T")
    total = float(days.rstrip("D") or 0) * 86400
    number = ""
    for letter in clock:
        if letter in "HMS":
            total += float(number) * {"H": 3600, "M": 60, "S": 1}[letter]
            number = ""
        else:
            number += letter
    return total


def say(text):
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description="A Punctual worker.")
    parser.add_argument("--server", default=os.environ.get("PUNCTUAL_SERVER", "http://127.0.0.1:8700"))
    parser.add_argument("--queue", default="work")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--ttr", help="how long a task may go without a sign of life, such as 30s")
    options = parser.parse_args()
    stop = threading.Event()
    for told in (signal.SIGTERM, signal.SIGINT):
        signal.signal(told, lambda *_: stop.set())
    server = Server(options.server, os.environ.get("PUNCTUAL_KEY"))
    say(f"working on {options.queue}")
    runner = threading.Thread(target=run, args=(server, options.queue, options.concurrency, options.ttr, stop))
    runner.start()
    # Signals reach only the main thread, which therefore has nothing else to do.
    while runner.is_alive():
        runner.join(0.1)
        if stop.is_set():
            server.stop_waiting()
    say("stopped")


if __name__ == "__main__":
    main()
