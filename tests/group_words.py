"""Products in groups of order 2^k, word by word, apart from the tables of the package."""

from opticoll.analysis.designs.two_groups import relations


def reduced_word(name, letters):
    """Normal form of a product of generators, by rewriting two neighbouring letters at a time."""
    words = [int(word, 16) for word in name.removeprefix("pc:").split(".")]
    count = int((2 * len(words)) ** 0.5)
    word = dict(zip(relations(count), words, strict=True))

    def spelled(number):
        return [g for g in range(count) if number >> g & 1]

    letters, at = list(letters), 0
    while at + 1 < len(letters):
        i, j = letters[at : at + 2]
        if i < j:
            at += 1
            continue
        letters[at : at + 2] = spelled(word[i, i]) if i == j else [j, i, *spelled(word[i, j])]
        at = max(at - 1, 0)
    return sum(1 << g for g in letters)
