"""A coding agent without a model: it runs the hooks that its configuration names, as the agents do."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.doors.cli.coding_agents import json_text

HOOKS = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "cursor": ".cursor/hooks.json",
    "gemini-cli": ".gemini/settings.json",
}
PROMPTS = {
    "claude-code": "UserPromptSubmit",
    "codex": "UserPromptSubmit",
    "cursor": "beforeSubmitPrompt",
    "gemini-cli": "BeforeAgent",
}


@dataclass
class FakeAgent:
    """One session of an agent, for a user with a home, in a project. It keeps what its hooks said on standard error."""

    name: str
    home: Path
    project: Path
    session: str
    turns: int = 0
    stderr: str = ""

    def start(self, source: str = "startup") -> str:
        """What the session knows at its start."""
        return self._context("sessionStart" if self.name == "cursor" else "SessionStart", {"source": source})

    def prompt(self, text: str) -> str:
        """What the model reads beside a prompt."""
        self.turns += 1
        return self._context(PROMPTS[self.name], {"prompt": text} | self._turn())

    def answer(self, text: str, prompt: str | None = None) -> None:
        """The end of a turn, with the last answer where the agent tells it."""
        if self.name == "cursor":
            self.fire("afterAgentResponse", {"text": text} | self._turn())
            self.fire("stop", {"status": "completed", "loop_count": 0} | self._turn())
        elif self.name == "gemini-cli":
            self.fire("AfterAgent", {"prompt": prompt, "prompt_response": text, "stop_hook_active": False})
        else:
            self.fire("Stop", {"last_assistant_message": text, "stop_hook_active": False} | self._turn())

    def end(self) -> None:
        """The user leaves."""
        self.fire("sessionEnd" if self.name == "cursor" else "SessionEnd", {"reason": "exit"})

    def fire(self, event: str, fields: dict[str, Any]) -> list[Any]:
        """Run the commands of an event; none may fail, and each prints one JSON object."""
        return [self.run(command, json.dumps(self._common(event) | fields)) for command in self.commands(event)]

    def run(self, command: str, given: str) -> Any:
        # Agents pass on only some of the environment.
        environment = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        done = subprocess.run(
            command, shell=True, cwd=self.project, env=environment, input=given, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        self.stderr += done.stderr
        return json.loads(done.stdout)

    def commands(self, event: str) -> list[str]:
        groups = json_text.parse((self.home / HOOKS[self.name]).read_text()).value["hooks"][event]
        return [handler["command"] for group in groups for handler in group.get("hooks", [group])]

    def _context(self, event: str, fields: dict[str, Any]) -> str:
        (output,) = self.fire(event, fields)
        assert "systemMessage" not in output
        if self.name == "cursor":
            return str(output.get("additional_context", ""))
        specific = output.get("hookSpecificOutput", {"hookEventName": event, "additionalContext": ""})
        assert specific["hookEventName"] == event
        return str(specific["additionalContext"])

    def _turn(self) -> dict[str, str]:
        names = {"codex": "turn_id", "cursor": "generation_id"}
        return {names[self.name]: f"turn-{self.turns}"} if self.name in names else {}

    def _common(self, event: str) -> dict[str, Any]:
        if self.name == "cursor":
            roots = {"workspace_roots": [str(self.project)], "cursor_version": "3.20.17"}
            return {"hook_event_name": event, "conversation_id": self.session} | roots
        return {
            "hook_event_name": event,
            "session_id": self.session,
            "cwd": str(self.project),
            "transcript_path": str(self.project / "transcript.jsonl"),
        }
