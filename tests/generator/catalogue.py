"""What programs compute, draw and observe: forms with places, `<real>` or `<count>`, for expressions of a type.

Every procedure of the language stands in one of these tables, with each number of arguments that it takes. The types
are those of `expressions.py`; forms keep to the domains of their procedures whatever stands in their places, and where
a program must be computed alike by two interpreters they cut no number where rounding could decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Forms = Mapping[str, tuple[str, ...]]

RANGES: Mapping[str, tuple[float, float]] = {
    "positive": (0.3, 2.0),
    "probability": (0.15, 0.85),
    "bounded": (-1.0, 1.0),
}
"""Types of numbers, with the constants that are simplest of them."""

SIMPLE: Forms = {
    "digit": ("0", "1"),
    "size": ("2", "3"),
    "vector": ("(vector <real> <real>)", "(to_vector (list <real> <real>))", "(ones 2)", "{M[2]}"),
    "matrix": ("{M}", "(matrix (list <bounded> <bounded>) (list <bounded> <bounded>))", "(ones 2 2)"),
    "covariance matrix": ("{COV}", "(eye 2)", "(matrix (list <positive> 0.1) (list 0.1 <positive>))"),
    "alphas": ("(list <positive> 1 1)", "(vector <positive> 1 0.5)", "(ones 3)"),
    "probabilities": ("(list 0.2 0.3 0.5)", "(vector 0.6 0.2 0.2)"),
    "scores": ("(list <bounded> 0 1)", "(vector 0.5 <bounded> -0.5)"),
    "start": ("(list 0.6 0.4)", "(vector 0.3 0.7)"),
    "transition": ("(matrix (list 0.8 0.2) (list 0.3 0.7))", "(list (list 0.5 0.5) (list 0.1 0.9))"),
    "numbers": ("(list <real> <count>)", "(list <real> 0.5)"),
    "text": ('"a"', '"b"'),
    "covariance": ("(gp_squared_exponential 1 <positive>)", "(gp_matern <positive> 1 1.5)"),
    "trend": ("<real>", "(gp_linear_mean <real>)"),
}
"""Where expressions end."""

COMPUTED: Forms = {
    "real": (
        "(+ <real> <real>)",
        "(+ <real> <real>)",
        "(- <real> <real>)",
        "(- <real>)",
        "(* 0.5 <real>)",
        "(* (sin <real>) <real>)",
        "(/ <real> <positive>)",
        "(/ <positive>)",
        "(max <real> <real>)",
        "(min <real> 1 <real>)",
        "(max <numbers>)",
        "(min <vector>)",
        "(abs <real>)",
        "(exp <bounded>)",
        "(expm1 <bounded>)",
        "(log <positive>)",
        "(log1p <positive>)",
        "(sqrt <positive>)",
        "(cos <real>)",
        "(tan <bounded>)",
        "(erf <real>)",
        "(logit <probability>)",
        "(logistic <real>)",
        "(lgamma <positive>)",
        "(pow <positive> <bounded>)",
        "(pow <bounded> 2)",
        "(atan2 <positive> <real>)",
        "(logsumexp <bounded> <bounded>)",
        "(logsumexp <numbers>)",
        "(mod (* 0.5 <count>) 1)",
        "(int_div <count> 0.5)",
        "(floor (+ 0.4 <count>))",
        "(round (* 0.8 <count>))",
        "(sum <vector>)",
        "(prod <vector>)",
        "(mean <numbers>)",
        "(mean <matrix>)",
        "(dot <vector> <vector>)",
        "(dot (vector <real> <real>) (vector 0.5 -0.3))",
        "(dot <vector> (solve <covariance matrix> <vector>))",
        "(linear_logistic <vector> <vector>)",
        "(trace <matrix>)",
        "(trace (inverse <covariance matrix>))",
        "(det <matrix>)",
        "(log (det <covariance matrix>))",
        "(lookup <vector> <digit>)",
        "(lookup (lookup <matrix> <digit>) 1)",
        "(sum (diagonal <matrix>))",
        "(lookup (list <real> <real>) <digit>)",
        "(lookup (list 1 <real> <real>) <count>)",
        "(lookup (dict 'a <real> \"a\" <real>) 'a)",
        '(lookup (dict "a" <real>) <text> <real>)',
        "(lookup (dict <count> <real>) 1 <real>)",
        "(lookup (to_dict (list (list 'k <real>) (list 2 <real>))) 2)",
        "(lookup (insert (dict 'k 1) 'k <real>) 'k)",
        "(first (pair <real> (list <real>)))",
        "(second (list 's <real>))",
        "(first (rest (list flip <real>)))",
        "(first (reverse (list <real> <real>)))",
        "(first (values (dict 2 <real>)))",
        "(second (first (to_list (dict 'k <real>))))",
        "(* 0.1 (size (list <real> <real>)))",
        "(fold + (+) <numbers>)",
        "(* (*) (+ <real>))",
        "(* <real>)",
        "(fold + 0 (map (lambda (w) (* w 0.5)) (list <real> <real>)))",
        "(fold (lambda (w u) (+ w (prod u))) 0 (zip <numbers> <vector>))",
        "(+ <boolean> <real>)",
        "{M[1, 2]}",
        "{X[3 - 1]}",
    ),
    "positive": (
        "(+ 0.3 (abs <real>))",
        "(exp (sin <real>))",
        "(if <boolean> 4 1)",
        "(+ 0.5 <count>)",
        "(max 0.2 <bounded>)",
    ),
    "probability": (
        "(logistic (sin <real>))",
        "(if <boolean> 0.2 0.7)",
        "(lookup (list 0.2 0.5 0.8) <count>)",
        "(/ (+ 1 <count>) 4)",
        "(first <probabilities>)",
    ),
    "bounded": ("(sin <real>)", "(- <probability> 0.5)", "(cos <count>)"),
    "vector": (
        "(vector <real> <real>)",
        "(+ <vector> <vector>)",
        "(- <vector> 0.5)",
        "(* <bounded> <vector>)",
        "(/ <vector> <positive>)",
        "(sin <vector>)",
        "(min <vector> (zeros 2))",
        "(reverse <vector>)",
        "(append (vector <real>) (vector <real>))",
        "(rest (vector 7 <real> <real>))",
        "(lookup <matrix> <digit>)",
        "(matmul <matrix> <vector>)",
        "(solve <covariance matrix> <vector>)",
        "(diagonal <matrix>)",
        "(to_vector (map (lambda (w) (sin w)) <vector>))",
    ),
    "matrix": (
        "(matrix (list <bounded> <bounded>) (vector <bounded> <bounded>))",
        "(matrix (list <vector> <vector>))",
        "(transpose <matrix>)",
        "(matmul <matrix> <matrix>)",
        "(dot <matrix> <matrix>)",
        "(+ <matrix> (eye 2))",
        "(* <bounded> <matrix>)",
        "(inverse <covariance matrix>)",
        "(cholesky <covariance matrix>)",
        "(diagonal <vector>)",
        "(zeros 2 2)",
    ),
    "covariance matrix": (
        "(diagonal (vector <positive> <positive>))",
        "(* <positive> (eye 2))",
        "(+ {COV} (* 0.5 (ones 2 2)))",
        "(let ((w (diagonal (list <bounded> <bounded>)))) (+ (eye 2) (matmul w (transpose w))))",
    ),
    "alphas": ("(* <positive> (ones 3))", "(+ 0.5 (to_vector <alphas>))", "(reverse <alphas>)"),
    "probabilities": (
        "(let ((w <alphas>)) (/ (to_vector w) (sum w)))",
        "(if <boolean> (list 0.1 0.8 0.1) (list 0.5 0.2 0.3))",
    ),
    "scores": ("(vector <bounded> <bounded> 0)", "(+ 1 (to_vector <scores>))"),
    "start": ("(let ((w <probability>)) (list w (- 1 w)))",),
    "transition": ("(matrix <start> <start>)", "(list <start> <start>)"),
    "numbers": (
        "(list <count> <real> 1)",
        "(map (lambda (w) (* 0.5 w)) <numbers>)",
        "(reverse <numbers>)",
        "(append <numbers> (list <real>))",
        "(append <numbers>)",
        "(map first (zip <numbers>))",
        "(pair <real> <numbers>)",
        "(to_list <vector>)",
        "(values (dict 'a <real> 'b 2))",
        "(map first (zip <numbers> <vector>))",
        "(if <boolean> (list 0.5) (range 1 3))",
    ),
    "text": (
        '(if <boolean> "a" "b")',
        '(join (list <text> "a"))',
        '(append "a" <text>)',
        '(substring (join (list "ab" <text>) "-") 3)',
        "(substring (reverse (append <text> <text>)) 0 1)",
        '(first (split (join (list <text> <text>) "-") "-"))',
        '(second (split "a b"))',
        "(to_string (if <boolean> 'a 'b))",
        '(lookup "abb" <count>)',
        "(first (keys (dict <text> 1)))",
    ),
    "covariance": (
        "(gp_matern <positive> <positive> 0.5)",
        "(gp_rational_quadratic <positive> 1 <positive>)",
        "(gp_periodic <positive> 1 <positive>)",
        "(gp_linear <positive>)",
        "(gp_linear 1 <bounded>)",
        "(gp_constant <positive>)",
        "(gp_sum <covariance> <covariance>)",
        "(gp_sum <covariance>)",
        "(gp_product <covariance>)",
        "(gp_product <covariance> <covariance>)",
    ),
    "trend": ("(gp_linear_mean <real> <real>)", "(gp_sum <trend> <trend>)", "(gp_product 0.5 <trend>)"),
    "boolean": (
        "(not <boolean>)",
        "(and <boolean> <boolean>)",
        "(or <boolean> <boolean>)",
        "(= <count> <count>)",
        "(!= <count> <count>)",
        "(< <count> <count>)",
        "(> <count> <boolean>)",
        "(<= 0 <count> 1)",
        "(>= <count> <count>)",
        '(< <text> "b")',
        "(= <text> <text>)",
        "(= <count> 1 <count>)",
        "(< 0 <count> 2)",
        "(> 2 <count> <boolean>)",
        "(>= 2 <count> 1)",
        "(!= (list <count> 'q) (list 1 'q))",
        "(= (vector <count> 1) (vector 1 <count>))",
        "(= (to_symbol <text>) 'a)",
        "(contains (list 0 <count>) <count>)",
        '(contains <text> "a")',
        "(contains (dict <count> flip) 1)",
        "(contains '(0 s 2) <count>)",
        '(contains (list "s" \'q <count>) <count>)',
        "(is_pair (range <count>))",
        "(is_empty (range <count>))",
        "(is_empty (append (list) (range <count>)))",
        "(is_empty (if <boolean> (vector) <vector>))",
        "(is_empty (if <boolean> (dict) (dict 1 <count>)))",
        "(= (zip) (append) (range <count>))",
        "(is_integer (* 0.5 <count>))",
        '(is_number (lookup (list <real> \'q "s") <count>))',
        '(is_symbol (lookup (list <real> \'q "s") <count>))',
        "(is_string (lookup (list 'q <text> <boolean>) <count>))",
        "(is_boolean (if <boolean> true <count>))",
        "(is_list (if <boolean> <numbers> <vector>))",
        "(is_vector (if <boolean> <numbers> <vector>))",
        "(is_matrix (if <boolean> <matrix> <vector>))",
        "(is_dict (if <boolean> (dict 1 <real>) (quote ())))",
    ),
    "count": (
        "(min 2 (+ <count> <count>))",
        "(mod (+ <count> <count>) 3)",
        "(int_div (+ 1 <count>) 2)",
        "(+ <boolean> <boolean>)",
        "(floor (+ 0.4 <count>))",
        "(round (* 0.8 <count>))",
        "(lookup (list <count> <count> 1) <count>)",
        "(lookup (list <count> 1) 5 <count>)",
        "(lookup (vector 0 1 2) <count>)",
        "(size (map (lambda (w) true) (range <count>)))",
        "(size (filter (lambda (w) (< w <count>)) (range 0 <count>)))",
        "(size (range 0 (+ 1 <count>) 2))",
        "(size (remove (insert (dict 'k 1) <count> 'k) 'k))",
        "(size (keys (insert (dict 1 flip) <count> 's)))",
        "(to_number (substring (to_string <count>) 0 1))",
        "(fold max 0 (list <count> <count>))",
        "(sum (list <boolean> <boolean>))",
        "(trace (matrix (list <count> 7) (list 7 0)))",
        "(first (first (zip (list <count>) (vector 1))))",
        "(size (append '(s) (list <count>)))",
        "(size (zeros <count>))",
    ),
}
"""What follows from other values."""

ONLY_LOOSELY: Forms = {"boolean": ("(< <real> <real>)", "(< <real> <real>)", "(>= (sum <vector>) <real>)")}
"""Where rounding may decide."""

FINITE: Forms = {
    "boolean": (
        "(flip <probability>)",
        "(flip <probability>)",
        "(flip <probability>)",
        "(bernoulli <probability>)",
        "(bernoulli_logit <bounded>)",
        "(flip)",
        "(bernoulli)",
    ),
    "count": (
        "(uniform_discrete 0 <size>)",
        "(binomial 2 <probability>)",
        "(categorical (vector 0.2 0.3 0.5))",
        "(categorical <probabilities>)",
        "(categorical (list 0.3 0.7) (list 2 <count>))",
        "(softmax_categorical <scores>)",
        "(lookup (multinomial 2 (list 0.3 0.7)) <digit>)",
        # Supports that depend on choices.
        "(uniform_discrete 0 (+ 1 <count>))",
        "(binomial <count> <probability>)",
        "(categorical (if <boolean> (list 0.4 0.6) (list 0.5 0.2 0.3)))",
        "(first (multinomial <count> (list 0.6 0.4)))",
    ),
    "vector": ("(multinomial 2 (list 0.4 0.6))", "(multinomial 1 <start>)"),
}
"""Draws of few values."""

ANY: Forms = {
    "boolean": FINITE["boolean"],
    "count": (*FINITE["count"], "(min 2 (poisson 0.7))", "(min 2 (geometric 0.6))", "(min 2 (neg_binomial 1 0.7))"),
    "real": (
        *["(normal <real> <positive>)"] * 6,
        "(gamma <positive> 1.5)",
        "(beta <positive> <positive>)",
        "(expon <positive>)",
        "(inv_gamma 3 <positive>)",
        "(student_t 4)",
        "(student_t 4 <real>)",
        "(student_t 4 <real> <positive>)",
        "(uniform_continuous -1 <positive>)",
        "(laplace <real> <positive>)",
        "(lognormal <bounded> 0.5)",
        "(cauchy <real> <positive>)",
        "(logistic_dist <real> <positive>)",
        "(von_mises <real> <positive>)",
        "(chi_sq <positive>)",
        "(inv_chi_sq 3)",
        "(half_normal <positive>)",
        "(half_cauchy <positive>)",
        "(weibull 1.5 <positive>)",
        "(pareto 2 <positive>)",
        "(poisson <positive>)",
        "(geometric <probability>)",
        "(neg_binomial <positive> <probability>)",
    ),
    "positive": ("(gamma 2 2)", "(half_normal 1)", "(chi_sq 3)", "(weibull 2 1)", "(pareto 2 0.5)", "(inv_chi_sq 3)"),
    "probability": ("(beta 2 2)", "(first (symmetric_dirichlet 2 2))"),
    "vector": (
        *FINITE["vector"],
        "(multivariate_normal <vector> <covariance matrix>)",
        "(multivariate_normal <vector> {COV})",
        "(dirichlet (list <positive> 1))",
        "(symmetric_dirichlet <positive> 2)",
    ),
    "covariance matrix": ("(wishart 4 {COV})", "(inv_wishart 5 (* <positive> (eye 2)))"),
    "probabilities": ("(dirichlet <alphas>)", "(symmetric_dirichlet <positive> 3)"),
    "start": ("(symmetric_dirichlet 2 2)",),
}
"""Draws of any kind."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A random application with values that may be observed for it."""

    form: str
    values: tuple[str, ...]


EVIDENCE = (
    Evidence("(flip <probability>)", ("true", "false", "1")),
    Evidence("(bernoulli <probability>)", ("true", "0")),
    Evidence("(bernoulli_logit <real>)", ("true", "false")),
    Evidence("(binomial 3 <probability>)", ("0", "2")),
    Evidence("(poisson <positive>)", ("0", "1", "3")),
    Evidence("(geometric <probability>)", ("0", "2")),
    Evidence("(neg_binomial <positive> <probability>)", ("0", "2")),
    Evidence("(categorical <probabilities>)", ("0", "2")),
    Evidence('(categorical <start> (list \'a "a"))', ("'a", '"a"')),
    Evidence("(softmax_categorical <scores>)", ("1", "2")),
    Evidence("(uniform_discrete 0 (+ 2 <count>))", ("0", "1")),
    Evidence("(normal <real> <positive>)", ("0.3", "-1.1")),
    Evidence("(uniform_continuous (- <positive>) 2)", ("0.1", "1.5")),
    Evidence("(beta <positive> <positive>)", ("0.2", "0.7")),
    Evidence("(gamma <positive> <positive>)", ("0.4", "2.1")),
    Evidence("(inv_gamma <positive> <positive>)", ("0.5", "1.7")),
    Evidence("(expon <positive>)", ("0.3", "1.9")),
    Evidence("(chi_sq <positive>)", ("0.8", "2.5")),
    Evidence("(inv_chi_sq <positive>)", ("0.5", "1.4")),
    Evidence("(student_t <positive>)", ("0.4", "-2")),
    Evidence("(student_t 3 <real>)", ("0.4", "-1")),
    Evidence("(student_t 3 <real> <positive>)", ("0.9", "-2")),
    Evidence("(cauchy <real> <positive>)", ("0.5", "-1.3")),
    Evidence("(half_cauchy <positive>)", ("0.4", "2")),
    Evidence("(half_normal <positive>)", ("0.4", "1.3")),
    Evidence("(laplace <real> <positive>)", ("0.1", "-0.9")),
    Evidence("(lognormal <real> <positive>)", ("0.6", "1.8")),
    Evidence("(logistic_dist <real> <positive>)", ("0.2", "-1.4")),
    Evidence("(weibull <positive> <positive>)", ("0.5", "1.6")),
    Evidence("(pareto <positive> 0.1)", ("0.6", "2.3")),
    Evidence("(von_mises <real> <positive>)", ("0.7", "-2.1")),
    Evidence("(multivariate_normal <vector> <covariance matrix>)", ("(vector 0.3 -0.4)", "(list 1 0.5)")),
    Evidence("(dirichlet <alphas>)", ("(vector 0.2 0.3 0.5)",)),
    Evidence("(symmetric_dirichlet <positive> 3)", ("(list 0.6 0.1 0.3)",)),
    Evidence("(multinomial 3 <probabilities>)", ("(vector 1 1 1)", "(list 0 1 2)")),
    Evidence("(wishart 4 <covariance matrix>)", ("(matrix (list 4 1) (list 1 3))",)),
    Evidence("(inv_wishart 5 <covariance matrix>)", ("(matrix (list 0.8 0.1) (list 0.1 0.5))",)),
)


@dataclass(frozen=True, slots=True)
class MadeForm:
    """A maker's application: the type of what is drawn from its product, and values that may be observed."""

    # None where nothing but evidence is drawn from it, in programs that are finite or not.
    kind: str | None
    form: str
    values: tuple[str, ...]
    # What each draw is given, and as what an observed one is given it.
    given: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    # The draws have finite support; what a `make_uc_` maker draws besides has not, but may be summed out.
    finite: bool = True


COIN = ("true", "false")
MAKERS = (
    *[MadeForm("boolean", "(make_beta_bernoulli <positive> <positive>)", COIN)] * 3,
    *[MadeForm("count", "(make_sym_dir_mult <positive> 3)", ("0", "1", "2"))] * 2,
    *[MadeForm("count", "(make_dir_mult <alphas>)", ("0", "1", "2"))] * 2,
    MadeForm("count", "(make_lazy_hmm <start> <transition> <transition>)", ("0", "1"), ("index",), ("0", "1", "2")),
    MadeForm("real", "(make_gamma_poisson <positive> 2)", ("0", "1", "3"), finite=False),
    MadeForm("real", "(make_normal_inv_chi_sq <real> 1 3 <positive>)", ("0.5", "-1.2"), finite=False),
    MadeForm(
        "vector",
        "(make_collapsed_multivariate_normal <vector> <positive> 4 <covariance matrix>)",
        ("(vector 0.2 0.4)", "(list -1 0.5)"),
        finite=False,
    ),
    *[
        MadeForm(
            "real",
            "(make_gp <trend> (gp_sum <covariance> (gp_noise <positive>)))",
            ("0.5", "-0.8"),
            ("bounded",),
            ("0", "1.5", "-0.7"),
            finite=False,
        )
    ]
    * 3,
)
UNCOLLAPSED = (
    MadeForm("boolean", "(make_uc_beta_bernoulli <positive> <positive>)", COIN),
    MadeForm("count", "(make_uc_sym_dir_mult <positive> 3)", ("0", "1", "2")),
    MadeForm("count", "(make_uc_dir_mult <alphas>)", ("0", "1", "2")),
    MadeForm("real", "(make_uc_gamma_poisson <positive> 2)", ("0", "1", "3"), finite=False),
    MadeForm("real", "(make_uc_normal_inv_chi_sq <real> 1 3 <positive>)", ("0.5", "-1.2"), finite=False),
)
