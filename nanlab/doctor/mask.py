"""Hides secrets in everything the doctor shows or saves: keys, tokens, passwords, e-mail addresses, home folders.

A log is often pasted into a public place; what is quoted from it must not give more away than the fault.
"""

import re

HIDDEN = "«hidden»"

_WHOLE = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}"  # Hugging Face
    r"|\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_]){0,3}[A-Za-z0-9]{16,}"  # OpenAI, Anthropic, Stripe
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"  # GitHub, GitLab
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # AWS access key id
    r"|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_.-]{20,}"  # Google
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"  # Slack
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)?"  # JSON web token
    r"|\bwandb_v1_[A-Za-z0-9_]{20,}"
    r"|\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4}\b"  # e-mail
)
_NAMED = re.compile(
    r"((?:api[-_ ]?key|secret|token|passw(?:or)?d|pwd|credential|access[-_ ]?key|wandb[-_ ]?key|private[-_ ]?key)"
    r"[A-Za-z_-]{0,20}['\"]?\s{0,3}[:=]\s{0,3}['\"]?)([^\s'\",;]{6,})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\b(?:bearer|basic)\s{1,3})([A-Za-z0-9._~+/=-]{12,})", re.IGNORECASE)
_LOGIN = re.compile(r"(://)[^\s/@:]{1,128}:[^\s/@]{1,256}@")
_HEX_KEY = re.compile(r"\b[0-9a-f]{40}\b")  # a W&B key, and a commit's name: both may go
_HOME = re.compile(
    r"(/(?:home|Users|mnt/home|nfs/home|data/home|gpfs/home)/)[^/\s'\":]{1,64}|([A-Za-z]:\\Users\\)[^\\\s'\"]{1,64}"
)
_ROOT = re.compile(r"(?<![\w/])/root(?=/)")


def mask(text: str) -> str:
    """`text` with what looks like a secret replaced by «hidden» and the user's name in a home folder by ``~``."""
    text = _LOGIN.sub(rf"\1{HIDDEN}@", text)
    text = _WHOLE.sub(HIDDEN, text)
    text = _NAMED.sub(lambda m: m[1] + (m[2] if _harmless(m[2]) else HIDDEN), text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    text = _HEX_KEY.sub(HIDDEN, text)
    return _ROOT.sub("~", _HOME.sub("~", text))


def _harmless(value: str) -> bool:
    """`tokens: 131072` counts tokens; a number is no secret."""
    return value.replace(",", "").replace(".", "").isdigit() or value.lower() in {"<unk>", "false", "<pad>"}
