"""Ctrl-C while a call waits for the database."""

# exit: -2 or 1 (Python's own, if a module is being imported at that moment)
# stderr: KeyboardInterrupt

import os
import signal
import threading

from recollect import ContextService

conversation = ContextService.create_conversation("ann")["id"]
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
while True:
    ContextService.record_interaction(conversation, "question " * 5000, "answer " * 5000)
