"""Hides secrets in everything the doctor shows or saves: keys, tokens, passwords, names of users, hosts and folders.

A log is often pasted into a public place; what is quoted from it must not give more away than the fault. Best effort:
a secret without a shape or a name of its own is not recognised, and the report says so.
"""

import re
import unicodedata

HIDDEN = "«hidden»"
QUOTE = 160  # characters of a line that are quoted

_WHOLE = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}|\bnpm_[A-Za-z0-9]{20,}|\bpypi-[A-Za-z0-9_-]{20,}"
    r"|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic, Stripe
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"  # GitHub, GitLab
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # AWS access key id
    r"|(?<![A-Za-z0-9/+=])(?=[A-Za-z0-9/+]{0,39}[0-9/+])(?=[A-Za-z0-9/+]{0,39}[a-z])(?=[A-Za-z0-9/+]{0,39}[A-Z])"
    r"[A-Za-z0-9+][A-Za-z0-9/+]{39}(?![A-Za-z0-9/+=])"  # a bare AWS secret
    r"|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_.-]{20,}"  # Google
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/\S{1,200}|discord(?:app)?\.com/api/webhooks/\S{1,200}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)?"  # JSON web token
    r"|\bwandb_v1_[A-Za-z0-9_]{20,}"
    r"|\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}\b"  # e-mail, user@host
    r"|\b(?:\d{1,3}\.){3}\d{1,3}(?=[:/\s,)\]'\"]|$)"  # an IP address
    r"|\b[a-z][a-z0-9-]{0,40}(?:\.[a-z0-9-]{1,40}){1,3}\.(?:internal|local|lan|corp|cluster|compute|edu|ac\.[a-z]{2})\b"
)
_NAMED = re.compile(
    r"((?:api[-_ ]?key|secret|token(?!i[sz])|passw(?:or)?d|pwd|credential|access[-_ ]?key|wandb[-_ ]?key"
    r"|private[-_ ]?key|accountkey|signature|\bsig)[A-Za-z_-]{0,20}['\"]?(?:\s{0,3}[:=]\s{0,3}|(?<=\S)\s(?=['\"]?\S)))"
    r"(\"[^\"]{1,200}\"|'[^']{1,200}'|[^\s'\",;&]{4,})",
    re.IGNORECASE,
)
_FLAG = re.compile(
    r"(--[a-z_-]{0,20}(?:password|token|api[-_]?key|secret)[ =])(\"[^\"]{1,200}\"|'[^']{1,200}'|\S{1,200})", re.I
)
_BEARER = re.compile(r"(\b(?:bearer|basic)\s{1,3})([A-Za-z0-9._~+/=-]{12,})", re.IGNORECASE)
_LOGIN = re.compile(r"(://)[^\s/:]{1,128}:[^\s/]{1,256}@")
_HEX_KEY = re.compile(r"\b[0-9a-fA-F]{40}\b")  # a W&B key, and a commit's name: both may go
_USER = re.compile(r"\b((?:USER|USERNAME|LOGNAME|HOSTNAME|HOST)\s{0,2}[=:]\s{0,2})[^\s,;'\"]{1,64}")
_HOME = re.compile(
    r"(?:/(?:home|Users|mnt/home|nfs/home|data/home|gpfs/home|scratch|work/users|lustre/home)/)[^/\s'\":]{1,64}"
    r"|[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/)[^\\/'\":]{1,64}(?=[\\/'\":]|$)"
)
_ROOT = re.compile(r"(?<![\w/])/root(?=/)")
_COUNTS = re.compile(r"tokens?\b", re.IGNORECASE)


def mask(text: str) -> str:
    """`text` with what looks like a secret replaced by «hidden» and the user's name in a home folder by ``~``."""
    text = _LOGIN.sub(rf"\1{HIDDEN}@", text)
    text = _FLAG.sub(rf"\1{HIDDEN}", text)
    text = _NAMED.sub(lambda m: m[0] if _harmless(m[1], m[2]) else m[1] + HIDDEN, text)
    text = _WHOLE.sub(HIDDEN, text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    text = _HEX_KEY.sub(HIDDEN, text)
    text = _USER.sub(rf"\1{HIDDEN}", text)
    return _ROOT.sub("~", _HOME.sub("~", text))


def plain(text: str) -> str:
    """`text` without control and format characters (escapes, bidirectional marks, zero-width and tag characters)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if c == "\t" else c for c in text if c == "\t" or unicodedata.category(c) not in {"Cc", "Cf"})


def shown(text: str) -> str:
    """One line as it may be shown: plain, masked, shortened."""
    text = mask(plain(text[: 4 * QUOTE]).strip())
    return text if len(text) <= QUOTE else text[: QUOTE - 1] + "…"


def _harmless(name: str, value: str) -> bool:
    """`tokens: 131072` counts tokens, and `token <unk>` is one; a numeric password stays a secret."""
    number = value.replace(",", "").replace(".", "").isdigit()
    words = not name.rstrip().endswith((":", "=")) and value.isalpha()  # "token is", "password file"
    counts = number and _COUNTS.search(name) is not None
    return counts or words or value.lower() in {"<unk>", "false", "<pad>", "none"}
