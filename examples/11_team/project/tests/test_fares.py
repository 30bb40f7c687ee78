import fares


def test_an_adult_pays_the_full_fare():
    assert fares.total(adults=1, children=0) == 1200


def test_children_pay_half():
    assert fares.total(adults=2, children=3) == 4200
