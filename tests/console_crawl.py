"""Walks through the console as a stranger would: every link, and every form with strange values in every field."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import cycle, islice
from urllib.parse import parse_qsl, urlsplit

import httpx

from recollect.doors.console import cookies
from recollect.flows.accounts.access import new_key_id
from tests.hostile_strings import HOSTILE

# They end the visit itself, and have tests of their own.
LEFT_OUT = frozenset({"/console/sign-out", "/console/sign-in"})
MAX_PAGES = 150

# The box that confirms that something ends for good, and the id of a new key, with which a form makes only one.
SURE = "really"
NEW_ID = "new_id"

_VOID = frozenset({"text", "search", "hidden", "number", "datetime-local", "date", "range", "url", "email", "password"})
_ADDRESSES = frozenset({"href", "src", "action", "formaction", "data", "poster", "srcdoc"})


@dataclass(slots=True)
class Form:
    """A form: where it goes, and what it holds when nothing is typed."""

    method: str
    action: str
    fields: dict[str, str] = field(default_factory=dict)
    is_upload: bool = False

    @property
    def name(self) -> tuple[str, str, tuple[str, ...]]:
        """Forms of the same fields to the same place are the same."""
        return self.method, urlsplit(self.action).path, tuple(sorted(self.fields))


class Seen(HTMLParser):
    """What a page has: links, forms, and what must not be there."""

    def __init__(self, page: str = "") -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: list[Form] = []
        self.faults: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._check(tag, given)
        if tag == "a" and given.get("href", "").startswith("/console"):
            self.links.append(given["href"])
        if tag == "form":
            upload = given.get("enctype") == "multipart/form-data"
            self.forms.append(Form(given.get("method", "get").upper(), given.get("action", ""), is_upload=upload))
        is_field = tag in ("input", "select", "textarea") and given.get("type", "text") in _VOID
        is_field = is_field or given.get("name") == SURE
        if is_field and self.forms and given.get("name"):
            self.forms[-1].fields.setdefault(given["name"], given.get("value", ""))

    def _check(self, tag: str, given: dict[str, str]) -> None:
        if tag == "script" and not given.get("src", "").startswith("/console/static/"):
            self.faults.append(f"a script of its own: {given}")
        if tag in ("style", "iframe", "object", "embed", "base"):
            self.faults.append(f"<{tag}>")
        for name, value in given.items():
            if name.startswith("on") or name == "style":
                self.faults.append(f"{tag} with {name}")
            if name in _ADDRESSES and not value.startswith(("/console", "#", "?")) and value:
                self.faults.append(f"{tag} leads to {value!r}")


class Crawl:
    """A visit to everything that can be reached from some addresses."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self.visited: set[tuple[str, str]] = set()
        self.forms: dict[tuple[str, str, tuple[str, ...]], Form] = {}
        self.faults: list[str] = []
        self._strings = cycle(HOSTILE)

    async def walk(self, addresses: list[str]) -> None:
        """Follow links; pages that differ in the values of their parameters alone are one."""
        waiting = list(addresses)
        known: set[tuple[str, frozenset[str]]] = set()
        while waiting and len(known) < MAX_PAGES:
            address = waiting.pop(0)
            parts = urlsplit(address)
            kind = parts.path, frozenset(name for name, _ in parse_qsl(parts.query))
            if kind in known or parts.path in LEFT_OUT or parts.path.endswith("/stream"):
                continue
            known.add(kind)
            waiting += self._look("GET", parts.path, await self._http.get(address)).links

    async def feed(self, strings_per_field: int | None) -> int:
        """Send every form with hostile strings in each of its fields, one at a time; returns how often."""
        sent = 0
        done: set[tuple[str, str, tuple[str, ...]]] = set()
        while waiting := [form for name, form in self.forms.items() if name not in done]:
            for form in waiting:
                done.add(form.name)
                for fields in self._variants(form, strings_per_field):
                    await self.send(form, fields)
                    sent += 1
        return sent

    def _variants(self, form: Form, strings_per_field: int | None) -> Iterator[dict[str, str]]:
        for name in form.fields:
            if name != cookies.FIELD:
                strings = HOSTILE if strings_per_field is None else islice(self._strings, strings_per_field)
                for string in strings:
                    yield {**form.fields, **({NEW_ID: new_key_id()} if NEW_ID in form.fields else {}), name: string}

    async def send(self, form: Form, fields: dict[str, str]) -> None:
        path = urlsplit(form.action).path
        if form.method == "GET":
            fitting = {name: value[:1500] for name, value in fields.items()}
            answer = await self._http.get(path, params=fitting)
        elif form.is_upload:
            upload = self._http.build_request("POST", path, data=fields, files={"file": ("a.jsonl", b"{}")})
            await upload.aread()  # to quote it
            answer = await self._http.send(upload)
        else:
            answer = await self._http.post(path, data=fields)
        self._look(form.method, path, answer)

    def _look(self, method: str, path: str, answer: httpx.Response) -> Seen:
        self.visited.add((method, path))
        place = f"{method} {answer.request.url} {answer.request.content[:300]!r}"
        if answer.status_code >= 500:
            self.faults.append(f"{place}: {answer.status_code} {answer.text[:300]}")
        if "x-planted" in answer.headers or "planted" in answer.headers.get("set-cookie", ""):
            self.faults.append(f"{place}: {answer.headers}")
        if not answer.headers.get("content-type", "").startswith("text/html"):
            return Seen()
        seen = Seen(answer.text)
        self.faults += [f"{place}: {fault}" for fault in seen.faults]
        for form in seen.forms:
            if form.action and urlsplit(form.action).path not in LEFT_OUT:
                self.forms.setdefault(form.name, form)
        return seen
