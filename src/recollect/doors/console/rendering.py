"""Templates: stored text is always text, times and sizes look the same everywhere, and nothing inline runs."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from recollect import __version__, origin
from recollect.doors import lineage
from recollect.doors.console import links
from recollect.language import words

# Scripts and styles come from our own files alone; no page can be framed, and forms go nowhere else.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    # Without a referrer of our own, Chromium sends forms with the origin `null`, which an open namespace refuses.
    "Referrer-Policy": "same-origin",
}

# Where a visit begins. The overview is about everybody, which a key of one user or agent may not see.
HOME, LIMITED_HOME = "/console", "/console/memories"

# Characters that change how others look, or that nobody can see; a tab and a newline are harmless. Joiners stay between
# letters of scripts that need them (Arabic, those of India, Burmese, Khmer, Mongolian) and within emoji; a variation
# selector stays behind what has variants (symbols, emoji, Chinese characters, Burmese) and within a keycap.
_JOINED = (
    "\u0600-\u06ff\u0750-\u077f\u08a0-\u0dff\u1000-\u109f\u1780-\u18af\u2190-\u27ff\u2900-\u2bff\ufe0f"
    "\U0001f000-\U0001faff"
)
_VARIED = (
    "\xa9\xae\u1000-\u109f\u203c\u2049\u2100-\u27ff\u2900-\u2bff\u3001-\u303d\u3297\u3299\u3400-\u9fff\uff01-\uff60"
    "\U0001f000-\U0001faff"
)
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    f"|[\u200c\u200d](?:(?<![{_JOINED}].)|(?![{_JOINED}]))"
    f"|[\ufe00-\ufe0f](?<![{_VARIED}].)(?!\u20e3)"
)


def page(request: Request, template: str, status: int = 200, **values: object) -> HTMLResponse:
    """A whole page."""
    state = request.scope.get("state", {})
    caller = {"namespace": state.get("namespace"), "author": state.get("author"), "role": origin.current().role}
    may_erase, is_limited = origin.may("admin"), origin.current().limits is not None
    may_review = may_erase and not is_limited
    may = {"may_change": origin.may("write"), "may_erase": may_erase, "may_review": may_review}
    where = {"path": request.url.path, "home": LIMITED_HOME if is_limited else HOME}
    values = {"csrf": "", **where, "is_limited": is_limited, **caller, **may, **values}
    return HTMLResponse(_environment().get_template(template).render(**values), status, HEADERS)


def fragment(template: str, **values: object) -> HTMLResponse:
    """A fragment of a page, for a script that puts it into one."""
    return HTMLResponse(fragment_text(template, **values), headers=HEADERS)


def fragment_text(template: str, **values: object) -> str:
    """The same as text, for a script that is sent several."""
    return _environment().get_template(template).render(**values)


def json_response(document: Any) -> Response:
    """JSON for a script of ours."""
    return Response(json.dumps(document, ensure_ascii=False, default=str), media_type="application/json")


def stored(text: object) -> Markup:
    """Stored text: markup in it is text, and what would be invisible or turn the line around is written out."""
    pieces: list[Markup] = []
    end = 0
    whole = str(text).replace("\r\n", "\n").encode(errors="replace").decode()
    for match in INVISIBLE.finditer(whole):
        code = ord(match.group())
        name = unicodedata.name(match.group(), "control character")
        mark = Markup('<span class="unseen" title="{}">U+{}</span>').format(name.lower(), f"{code:04X}")
        pieces += escape(whole[end : match.start()]), mark
        end = match.end()
    return Markup("").join([*pieces, escape(whole[end:])])


def written_out(text: object) -> str:
    """The same without markup: for titles, and for what a screen reader says."""
    return INVISIBLE.sub(lambda match: f"[U+{ord(match.group()):04X}]", str(text).replace("\r\n", "\n"))


def marked(text: str, places: Sequence[tuple[int, int]]) -> Markup:
    """Stored text in which some places are marked, each by its first character and the one behind its last."""
    pieces: list[Markup] = []
    end = 0
    for first, behind in places:
        pieces += stored(text[end:first]), Markup("<mark>{}</mark>").format(stored(text[first:behind]))
        end = behind
    return Markup("").join([*pieces, stored(text[end:])])


def words_marked(text: str, question: str) -> Markup:
    """Stored text in which the words that a question asks for are marked."""
    terms = {variant for term in words.query_terms(question) for variant in term.variants}
    return marked(text, words.places(text, terms) if terms else [])


def field_time(at: datetime | None) -> str:
    """A time in UTC, as the field for it in a form has it; without fractions of a second."""
    return "" if at is None else at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")


def has_unseen(text: str) -> bool:
    """Whether a page writes some of it out, so that what is copied from there is another text."""
    return INVISIBLE.search(text) is not None


def moment(at: datetime | None) -> Markup:
    """A time in UTC."""
    if at is None:
        return Markup('<span class="quiet">none</span>')
    at = at.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S} UTC")


def size(number: int) -> str:
    """Bytes, readable."""
    amount = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def shortened(text: object, most: int = 160) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def pretty(document: object) -> str:
    """Metadata, readable."""
    return json.dumps(document, ensure_ascii=False, indent=2, default=str)


def with_query(path: str, **parameters: object) -> str:
    """An address; values that are None or empty are left out."""
    kept = {name: value for name, value in parameters.items() if value not in (None, "", ())}
    return f"{path}?{urlencode(kept, doseq=True)}" if kept else path


@cache
def static_files() -> Mapping[str, bytes]:
    """What scripts and styles there are, by name."""
    folder = files("recollect.doors.console") / "static"
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


@cache
def static_version(name: str) -> str:
    """What stands for the content of a file in its address."""
    return hashlib.sha256(static_files()[name]).hexdigest()[:12]


def static(name: str) -> str:
    """The address of a file, which is another one once the file has changed."""
    return f"/console/static/{name}?v={static_version(name)}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("recollect.doors.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        stored=stored,
        words_marked=words_marked,
        moment=moment,
        field_time=field_time,
        bytes=size,
        shortened=shortened,
        written_out=written_out,
        pretty=pretty,
        number=lambda n: f"{n:,}",
        first_upper=lambda text: text[:1].upper() + text[1:],  # `capitalize` would write "Keys to the api"
    )
    environment.globals.update(
        static=static,
        with_query=with_query,
        item_link=links.item,
        named_link=links.named,
        wording=lineage,
        version=__version__,
    )
    return environment
