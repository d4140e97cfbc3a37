"""Nothing secret leaves the doctor, in no form of the answer."""

import pytest

from nanlab.doctor import diagnose
from nanlab.doctor.mask import HIDDEN, mask

FAKE = "Q7w3E9r1T5y8U2i6O4p0A1s2D3f4G5h6J7k8"  # no key of anything
SECRETS = [
    f"hf_{FAKE}",
    f"sk-{FAKE}",
    f"sk-proj-{FAKE}",
    f"ghp_{FAKE}",
    "AKIA" + FAKE[:16].upper(),
    f"wandb_v1_{FAKE}",
    "0123456789abcdef0123456789abcdef01234567",
    f"xoxb-{FAKE}",
    f"eyJ{FAKE}.{FAKE}.{FAKE}",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_keys_are_hidden_wherever_they_stand(secret):
    for text in (f"login with {secret} ok", f"key={secret}", f'"{secret}"', f"https://host/{secret}/x"):
        assert secret not in mask(text)
        assert HIDDEN in mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter22x",
        "API_KEY: abcdef123",
        "--token 'x'".replace(" 'x'", "=zzz999zzz"),
        "WANDB_API_KEY=abc123def",
    ],
)
def test_what_is_called_a_secret_is_hidden(text):
    assert HIDDEN in mask(text)


def test_counts_of_tokens_are_no_secret():
    assert mask("tokens: 131072 tokenizer=llama num_tokens=4096") == "tokens: 131072 tokenizer=llama num_tokens=4096"


def test_people_and_their_folders_are_hidden():
    shown = mask('File "/home/maria/x/train.py", /Users/jo/y.py C:\\Users\\Ana\\z.py /root/w.py a.b-c@uni.example.org')
    for name in ("maria", "jo/", "Ana", "/root", "a.b-c@uni"):
        assert name not in shown
    assert "~/x/train.py" in shown


def test_logins_in_addresses_are_hidden():
    assert mask("git clone https://me:pw12345@host/x") == f"git clone https://{HIDDEN}@host/x"


def test_the_answer_quotes_without_secrets(tmp_path):
    start = f"[rank0] /home/maria/t.py token=hf_{FAKE} step"
    text = f"{start} 1 loss 2.0\n{start} 2 loss nan\n"
    answer = diagnose(text)
    assert answer.quotes
    for shown in (str(answer), answer._repr_html_(), answer.to_json(tmp_path / "out.json"), repr(answer.quotes)):
        assert "maria" not in shown and FAKE not in shown


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("run --password hunter2 now", "hunter2"),
        ("--api-key abcd1234efgh", "abcd1234efgh"),
        ("--hf_token abcdefgh12", "abcdefgh12"),
        ("password: 12345678", "12345678"),
        ("sk-proj-ab_cd-efghijklmnop1234", "efghijklmnop"),
        ('password="two words here"', "words"),
        ("https://me:p@ss@host.org/x", "ss@host"),
        ("https://hooks.slack.com/services/T000/B000/XXXX", "T000"),
        ("https://discord.com/api/webhooks/123/abc", "abc"),
        ("AccountKey=Zm9vYmFyYmF6cXV4", "Zm9v"),
        ("?sv=2020&sig=a1B2c3D4e5", "a1B2"),
        ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "bPxRfi"),
        ("key 0123456789ABCDEF0123456789ABCDEF01234567", "9ABC"),
        ("USER=jdoe", "jdoe"),
        ("jdoe@gpu-node-07", "gpu-node"),
        ("listening on 10.1.2.3:8080", "10.1.2.3"),
        ("/scratch/jdoe/run", "jdoe"),
        ("C:\\\\Users\\\\jdoe\\\\x", "jdoe"),
        ("C:\\Users\\Jane Doe\\x", "Doe"),
    ],
)
def test_secrets_found_by_attack_are_hidden(line, secret):
    assert secret not in mask(line)


@pytest.mark.parametrize("mark", ["\x85", "\x9b", "\u202e", "\u2066", "\u200b", "\U000e0041"])
def test_control_and_format_characters_reach_no_output(mark):
    from nanlab.doctor import diagnose

    answer = diagnose(f"step 1 loss 2.0\nstep 2 loss nan {mark}x\n")
    assert mark not in str(answer) + answer._repr_html_() + answer.to_json()
