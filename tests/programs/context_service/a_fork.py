"""A forked child calls too, and both end."""

import os

from recollect import ContextService

conversation = ContextService.create_conversation("ann")["id"]
if (child := os.fork()) == 0:
    ContextService.record_interaction(conversation, "from the child", "heard")
else:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(ContextService.fetch_chat_history(conversation)["messages"]) == 2
