"""A program that fails shows its own failure, and nothing of ours."""

# exit: 1
# stderr: LookupError: on purpose

from recollect import ContextService

ContextService.create_conversation("ann")
raise LookupError("on purpose")
