"""What to write in place of a name that nothing binds: this language's word for another's, or the nearest spelling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from venture_lite.errors import nearest

ELSEWHERE: Mapping[str, str] = {
    "uniform": "(uniform_continuous LO HI), or (uniform_discrete LO HI) for the integers from LO to HI - 1",
    "exponential": "(expon RATE)",
    "gaussian": "(normal MEAN SD)",
    "norm": "(normal MEAN SD)",
    "mvnormal": "(multivariate_normal MEAN COVARIANCE)",
    "inverse_gamma": "(inv_gamma SHAPE SCALE)",
    "delta": "the value itself: what is certain is no random choice, [assume x VALUE]",
    "array": "(list 1 2), or (vector 1 2) for a vector of numbers",
    "length": "(size XS)",
    "len": "(size XS)",
    "std": "(sd XS)",
    "median": "(quantile XS 0.5)",
    "var": "(variance XS)",
    "softmax": "(softmax_categorical SCORES) draws by them, (exp (- XS (logsumexp XS))) are the probabilities",
    "log_softmax": "(- XS (logsumexp XS))",
    "categorical_logit": "(softmax_categorical SCORES)",
    "sigmoid": "(logistic X)",
    "inv_logit": "(logistic X)",
    "invlogit": "(logistic X)",
    "expit": "(logistic X)",
    "phi": "(normal_cdf X)",
    "probit": "(normal_cdf X) is the probability of a score",
    "expt": "(pow X Y)",
    "power": "(pow X Y)",
    "^": "(pow X Y)",
    "**": "(pow X Y)",
    "square": "(pow X 2)",
    "modulo": "(mod X Y)",
    "gammaln": "(lgamma X)",
    "factorial": "(exp (lgamma (+ N 1)))",
    "inv": "(inverse M)",
    "car": "(first XS)",
    "cdr": "(rest XS)",
    "cons": "(append (list X) XS)",
    "concat": "(append XS YS)",
    "nth": "(lookup XS I), where the first is at 0",
    "elt": "(lookup XS I), where the first is at 0",
    "index": "(lookup XS I), where the first is at 0",
    "null": "(list), and (is_empty XS) asks for it",
    "null?": "(is_empty XS)",
    "nil": "(list), and (is_empty XS) asks for it",
    "reduce": "(fold F START XS)",
    "let*": "(let ((NAME EXPR) ...) BODY), where each sees those before",
    "random": "(uniform_continuous 0 1)",
    "randn": "(normal 0 1)",
    "lkj": "(lkj_cholesky N ETA)",
    "lkj_corr": "(lkj_cholesky N ETA)",
    "query": "(enumerate (lambda () EXPR))",
    "scope": "(tag 'SCOPE BLOCK EXPR), or scope_include: the random choices made while EXPR is evaluated",
    "metropolis": "(mh SCOPE BLOCK T)",
}
"""Words that other systems have, and how the same is said here."""

DRAWN_IN_A_LIST = "(map (lambda (i) (flip)) (range 3)) is a list of three draws; repeat is an action of [infer ...]"


def suggestion(name: str, known: Iterable[str], written: Mapping[str, str] | None = None) -> str | None:
    """A hint for an unknown name, or None; `written` says how some of the known ones are written."""
    known = list(known)
    word = name.lower()
    return ELSEWHERE[word] if word in ELSEWHERE and word not in known else nearest(name, known, written)
