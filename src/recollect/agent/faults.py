"""Errors of the agent runtime, with messages that a user can act on and that contain no credentials."""


class AgentError(Exception):
    """Base of everything the runtime raises on purpose."""


class Refused(AgentError):
    """The input is wrong: nothing was stored and nothing was asked."""


class FileFault(AgentError):
    """A file of the workspace cannot be read or written."""


class ProviderError(AgentError):
    """The model gave no whole answer; the run ends here."""
