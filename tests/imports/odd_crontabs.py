"""Odd files of cron.d, drawn by chance: what people write by mistake, by habit from other crons, and on purpose.

Each entry notes how it was run under a name of its own, `{note} NAME`, so that what really ran can be told.
"""

from __future__ import annotations

from random import Random

VARIABLES = (
    "TITLE=plain", "TITLE=two words", "TITLE='single quoted'", 'TITLE="double quoted"', "  TITLE  =  spaced  ",
    "\tTITLE\t=\ttabs\t", "TITLE=a=b", "TITLE==x", "TITLE=$HOME", "TITLE=a # no comment", 'TITLE=it"s', "TITLE=''",
    'TITLE=""', "TITLE=a'b'", "'TITLE'=quoted name", '"TITLE"="both"', "TITLE=' blanks '", 'TITLE=" b "', "TITLE='a\"b'",
    "SIZE=10%", "SIZE=\\%", "SIZE=\\", "LANG=C.UTF-8", "APP_ENV=é", "LOGNAME=games", "USER=games", "MAILTO=ops@example.org",
    'MAILTO=""', "SHELL=/bin/bash", "SHELL=/bin/sh", "PATH=/usr/bin:/bin:/opt", "HOME={home}", "HOME=/", "A-B=c", "1A=c",
    "TITLE=~", "TITLE='un'closed", "SHELL='/bin/bash'", "CRON_TZ=Asia/Tokyo", "TZ=Asia/Tokyo", "SIZE=a\\ b", "SIZE=\"a\\\"",
)  # fmt: skip
FAULTS = (
    "TITLE=", "TITLE='", 'TITLE="a" b', "=x", "TITLE", "nonsense here", "* * * *", "* * * * *", "* * * * * root",
    "60 * * * * root {note} NAME", "* 24 * * * root {note} NAME", "5-1 * * * * root {note} NAME", "@never root {note} NAME",
    "* * * * * nosuchuser {note} NAME", "*/0 * * * * root {note} NAME", "@Daily root {note} NAME", "1,,2 * * * * root {note} NAME",
    "* * * * * root", "TITLE='x' # y", "+1 * * * * root {note} NAME", "MAILTO=", "1-2-3 * * * * root {note} NAME",
    "* * * * 8 root {note} NAME", "* * 0 * * root {note} NAME", "* * * 13 * root {note} NAME", "1/2 * * * * root {note} NAME",
    "? * * * * root {note} NAME", "L * * * * root {note} NAME", "* * L * * root {note} NAME", "*-5 * * * * root {note} NAME",
    "~ * * * * root {note} NAME", "0~9 * * * * root {note} NAME", "\u00a0* * * * * root {note} NAME", "* * * * * -root {note} NAME",
)  # fmt: skip
LAYOUT = ("", "  ", "\t", "# a comment", "   # indented", "#", "\f", " \t ", "#* * * * * root {note} commented")
TAILS = (
    "", " a b", " 'q u' \"r s\"", " $TITLE", ' "$SIZE"', " x  y ", " \t", " # c", " \\%", "%", "%in", "%a%b", "%a\\%b%", "%%",
    " $(printf \\%s z)", "%x\\\\%y", " \\\\", " ~", ' "a\\b"', "; true", " && true", " %  ", "%\\", " \\", "%a\\b",
    " `echo \\%`", " a\\\\%b", " 'a\\%b'", "%é", " é", " >/dev/null", " 2>&1", " | cat", "%tail ", "%a\\",
    "%a%\\", "%\\\\", "%a  %  ", " a\\ ", " a\\  ", " a\\\\ ", "%a\\\\%b",
    " x\u00a0", " 'a\\\\b'", " '\\\\\\\\'", " \"\\\\$TITLE\"", "%x\u00a0", " \\\\\\%", " {}", " \r",
)  # fmt: skip
USERS = ("root", "root", "www-data", "backup", "nobody", "games", "man")


def odd_files(seed: int, count: int) -> dict[str, str]:
    """Texts by name. Every entry has a name of its own: `e3-2` is the second of the third file."""
    draw = Random(seed)
    return {f"odd-{number}": _file(draw, number) for number in range(count)}


def _file(draw: Random, number: int) -> str:
    lines = []
    for entry in range(draw.choice((1, 1, 2, 3))):
        lines += draw.sample(VARIABLES, draw.choice((0, 0, 1, 1, 2, 3)))
        lines += draw.sample(LAYOUT, draw.choice((0, 0, 1, 2)))
        lines.append(_entry(draw, f"e{number}-{entry}"))
    if draw.random() < 0.2:
        lines.insert(draw.randrange(len(lines) + 1), draw.choice(FAULTS).replace("NAME", f"bad{number}"))
    ends = (
        "\n",
        "\n",
        "\n",
        "\n",
        "\n",
        "\n\n",
        "\n   \n",
        "\n# end\n",
        "\n\t# end\n",
        "",
        "\n ",
        "\n#",
        "\r\n",
        "\nTITLE=x",
    )
    return "\n".join(lines) + draw.choice(ends)


def _entry(draw: Random, name: str) -> str:
    schedule = _schedule(draw)
    gap = draw.choice((" ", " ", "\t", "  ", " \t "))
    before = draw.choice(("", "", "", " ", "\t"))
    return f"{before}{schedule}{gap}{draw.choice(USERS)}{gap}{{note}} {name}{draw.choice(TAILS)}"


def _schedule(draw: Random) -> str:
    if draw.random() < 0.08:
        return draw.choice(
            ("@hourly", "@hourly", "@daily", "@midnight", "@HOURLY", "@weekly", "@monthly", "@annually")
        )
    fields = [
        draw.choice(_minutes(draw)),
        draw.choice(("*", "*", "*", "1", "01", "1-2", "1,2", "*/2", "0-23", "0-23/2", "1-3/2", "2,1", "1,1", "23,1", "*/1", "*/99")),
        draw.choice(("*", "*", "*", "*", "1", "01", "1-7", "*/2", "*/3", "2", "1,15", "31", "*,5", "2-3", "28-31")),
        draw.choice(("*", "*", "*", "*", "3", "mar", "MAR", "jan-mar", "1-6", "*/2", "march", "2,3", "1-12/2", "03")),
        draw.choice(("*", "*", "*", "*", "1", "mon", "Mon", "mon-fri", "1-5", "0", "7", "0-7", "sun", "2", "*/2", "1,2", "5-7", "*/7",
                     "monday", "tue,mon", "01", "6-7", "mon,3", "sun-mon", "fri-sun")),
    ]  # fmt: skip
    separator = draw.choice((" ", " ", "\t", "  "))
    return separator.join(fields)


def _minutes(draw: Random) -> list[str]:
    one, two = draw.randrange(60), draw.randrange(60)
    low, high = sorted((one, two))
    return [
        str(one), f"{one:02}", f"{one},{two}", f"{low}-{min(high, low + 2)}", f"{low}-{high}/{draw.randrange(10, 40)}",
        f"*/{draw.randrange(15, 59)}", f"{one}, {two}"[: 2 if one > 9 else 1], f"{low}-{high}/29,{two}", "*/60", f"{low}-{high}/100",
    ]  # fmt: skip
