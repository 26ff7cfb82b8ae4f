"""Run work in threads that wait for more of it, because whoever starts a thread waits until it runs (decision 0602)."""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context
from queue import SimpleQueue

MAX_IDLE_THREADS = 8


class ThreadTask:
    """Work in one of the threads. `join` waits for it, not for the thread."""

    def __init__(self, target: Callable[[], object], name: str) -> None:
        self._target = target
        self._name = name
        self._running = threading.Lock()
        self._running.acquire()

    def run(self) -> None:
        """Call the target in this thread. Its error is reported as that of any thread."""
        threading.current_thread().name = self._name
        try:
            Context().run(self._target)  # a new thread has an empty context, too
        except BaseException:  # noqa: BLE001 - as in a thread of its own
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
        finally:
            del self._target
            threading.current_thread().name = "idle"

    def finish(self) -> None:
        """Let whoever joins go on."""
        self._running.release()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the target has returned, at most `timeout` seconds."""
        if self._running.acquire(timeout=-1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX)):
            self._running.release()


class ReusedThreads:
    """The threads of a process. A forked process begins without any."""

    def __init__(self) -> None:
        self._idle: deque[SimpleQueue[ThreadTask]] = deque()
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forget_threads)

    def start(self, target: Callable[[], object], name: str) -> ThreadTask:
        """Run `target` in a daemon thread, which does not keep the process alive.

        Raises:
            RuntimeError: The process can have no further thread.
        """
        task = ThreadTask(target, name)
        try:
            self._idle.pop().put(task)
        except IndexError:
            threading.Thread(target=self._serve, args=(task,), name=name, daemon=True).start()
        return task

    def _serve(self, task: ThreadTask) -> None:
        tasks: SimpleQueue[ThreadTask] = SimpleQueue()
        while True:
            task.run()
            is_kept = self._keep(tasks)  # before whoever joins goes on, and may start the next
            task.finish()
            del task  # with what its target refers to
            if not is_kept:
                return
            task = tasks.get()

    def _keep(self, tasks: SimpleQueue[ThreadTask]) -> bool:
        with self._lock:
            is_kept = len(self._idle) < MAX_IDLE_THREADS
            if is_kept:
                self._idle.append(tasks)
            return is_kept

    def _forget_threads(self) -> None:
        self._idle.clear()
        self._lock = threading.Lock()


process_threads = ReusedThreads()
