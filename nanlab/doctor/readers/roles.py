"""What a named number is about, from its name alone: loss, gradient, loss scale, rate, metric, state, other."""

import re
from functools import lru_cache

_RULES = (  # the first that matches decides; names are in lower case
    ("other", re.compile(r"(?:^|[ _/.])(?:time|eta|sec(?:ond)?s?|mem(?:ory)?|ms|speed|throughput|ips|tflops|mfu"
                         r"|it/s|samples|"
                         r"size|images|frames|data|over|count|instances|batch_time|lines?|version|port|rank"
                         r"|step_time|tokens?|tok/s|tgs)$")),
    ("scale", re.compile(r"(?:loss|grad|amp|fp16|opt)[ _-]?scal(?:e|er|ing)|(?:^|[ _/])scale$|scaler")),
    ("gradient", re.compile(r"grad|backward|gnorm|g_norm|(?:^|[ _/])(?:gn|total_norm|global norm|clip_norm_value)$")),
    ("lr", re.compile(r"(?:^|[ _/.\-])(?:lr\d?|learning[ _-]?rate|lr[ _/-].{0,30}|lr0|optim\d_lr\d)$"
                      r"|learning[_ -]?rate|^eta_?lr$")),
    ("state", re.compile(r"logit|activation|att(?:entio)?n|(?:^|[ _/.])(?:weights?|params?|input|hidden)[ _/]"
                         r"|running_|exp_avg")),
    ("metric", re.compile(r"acc(?:uracy)?(?:\d|$|[_ /@])|auc|\bap[sml]?\d{0,2}$|map\d|(?:^|[_/ ])map$|(?:^"
                          r"|[_/ ])(?:iou|miou|giou_avg|dice|dsc|f1|f-?score|"
                         r"precision|recall|prec|psnr|ssim|lpips|bleu|rouge|wer|cer|ter|r2|corr(?:elation)?"
                         r"|pearson|spearman|kappa|mcc|"
                         r"top-?\d|hits?|mrr|ndcg|fid|is_score|inception|reward|rewards?/.{0,40}|return|ep_.{0,30}"
                         r"|episode_.{0,30}|fps|success|"
                         r"explained_variance|key_norm|avg_key_norm|hota|mota|idf1|mcd|rmse_db|snr|si-?sdr|sdr"
                         r"|pesq|stoi|cindex|"
                         r"obj|no obj|class|\.?5r|\.75r|mae|mape|mse_metric|smape|msle|stdev|std|mean|median|min"
                         r"|max)$|(?:^|[_/ ])"
                          r"(?:ap|ar|map|recall|precision|prec|f1|iou|miou|dice|auc|psnr|ssim|bleu)[ _/@.-]\S{1,24}$"
                          r"|matthews|spearman|pearson|rew_?mean|len_?mean|_auc|_acc|^acc_|map50|iou$|avg iou")),
    ("loss", re.compile(r"loss|损失|損失|ロス|손실|verlust|\bperte\b|потер|pérdida|"
                        r"xent|cross[ _-]?entropy|(?:^|[ _/.\-])(?:nll|ppl|perplexity|cost|objective|elbo|ce"
                        r"|mse|rmse|bce|score|energy|"
                        r"kl(?:d|_div)?|bpc|bpb|bits|residual|l1|l2|huber|logloss|deviance|chi2|error|err|logp"
                        r"|likelihood|ll|vlb|wce|gan|d|g)$|"
                        r"(?:^|[ _/])(?:kl|nll|elbo|logprob|approx_kl|policy_gradient)|likelihood|traindeviance"
                        r"|train-.{0,20}")),
    ("state", re.compile(r"weight|param|logit|activation|output|pred|hidden|embed|feature|tensor|norm(?:$|[ _/])"
                         r"|bias|variance|sigma|"
                         r"log_?(?:std|var|sigma)|entropy|prob|score|abs ?max|input|target|value|mean|std|(?:^"
                         r"|[ _/])ratio|alpha|beta|x$|y$")),
)  # fmt: skip
_METRIC_PARENT = re.compile(r"(?:^|_)m?ap(?:$|@)|recall|precision|accuracy|iou|metrics?$|reward")
_SCALE = re.compile(r"scal(?:e|er|ing)$")
_VALIDATION = re.compile(
    r"(?:^|[^a-z])(?:val(?:i|id(?:ation)?)?|eval(?:uation)?|test(?:ing)?|dev|holdout)(?:$|[^a-z])|^(?:val|eval"
    r"|valid|test)[a-z]?_"
)
_TRAIN = re.compile(r"train")
_CONSTANT = re.compile(
    r"best|improved|\bfrom$|initial|mask|threshold|fill|limit|bound|clip|max_?norm|(?:^|[ _/.])(?:min|max)[ _]"
    r"|patience|min_delta|(?:^|[ _/])eta$|speed|throughput|lowest|timeout|early|previous|prev"
)
_AVERAGE = re.compile(r"(?:^|[ _/])(?:avg|avr|average|mean|smoothed|running|ema|tot|tot_loss|moving)(?:$|[ _/])")


@lru_cache(maxsize=4096)
def role_of(name: str) -> str:
    """The role of a number called `name`; ``unnamed`` for ``""`` and ``other`` for what no rule knows."""
    if not name:
        return "unnamed"
    last = name.split("/")[-1]
    if last in {"over", "frames", "utts"}:
        return "other"
    if "loss" in last and not _SCALE.search(last) and "lossless" not in last:
        return "loss"
    role = next((role for role, rule in _RULES if rule.search(name)), "other")
    parents = name.split("/")[:-1] if role == "other" else []  # "AP@0.5IOU/bicycle" is an AP
    return "metric" if any(_METRIC_PARENT.search(parent) for parent in parents) else role


@lru_cache(maxsize=4096)
def may_be_infinite(name: str) -> bool:
    """Whether an inf under this name is a setting or a starting value: `best_loss: inf`, `mask value: -inf`."""
    return bool(_CONSTANT.search(name))


@lru_cache(maxsize=4096)
def is_validation(text: str) -> bool:
    """Whether a name or the head of a line speaks of validation and not of training."""
    return bool(_VALIDATION.search(text)) and not _TRAIN.search(text)


@lru_cache(maxsize=4096)
def is_average(name: str) -> bool:
    """Whether a name says that its number is a running mean."""
    return bool(_AVERAGE.search(name))
