"""Crontabs as people write them: what each becomes. Every line counts: (jobs, not carried over)."""

from __future__ import annotations

CRONTABS: dict[str, tuple[str, int, int]] = {
    "a single line": ("0 3 * * * /usr/local/bin/backup.sh\n", 1, 0),
    "no final newline": ("0 3 * * * backup", 1, 0),
    "comments above entries": ("# header\n\n# nightly backup\n# of the shop\n0 3 * * * backup\n\n# tick\n*/5 * * * * tick\n", 2, 0),
    "mail to nobody": ('MAILTO=""\n15 4 * * * quiet\n', 1, 0),
    "mail to someone": ("MAILTO=ops@example.org\n15 4 * * * loud\n", 1, 0),
    "mail to what is no address": ("MAILTO=<ops>\n15 4 * * * loud\n", 1, 1),
    "mail to several, then to nobody": ("MAILTO=ops,night@example.org\n1 4 * * * a\nMAILTO=\n2 4 * * * b\n", 2, 0),
    "variables": ("PATH=/opt/bin:/usr/bin:/bin\nLANG=C.UTF-8\nFOO='a b'\n0 * * * * tool\n", 1, 0),
    "bash": ("SHELL=/bin/bash\n0 0 * * * [[ -f /x ]] && run\n", 1, 0),
    "percent as date": ("0 1 * * * tar cf /b/$(date +\\%F).tar /srv\n", 1, 0),
    "percent as input": ("0 9 * * 1-5 mail -s Report bob%Hello,%all is well.\n", 1, 0),
    "nicknames": ("@daily a\n@hourly b\n@weekly c\n@monthly d\n@yearly e\n@annually f\n@midnight g\n", 7, 0),
    "reboot": ("@reboot /usr/bin/agent\n0 1 * * * other\n", 2, 0),
    "names and ranges": ("0 9-17 * * mon-fri check\n0 0 1 jan,jul * audit\n30 8 * * SUN brunch\n", 3, 0),
    "steps and lists": ("*/15 * * * * a\n0-30/10 2 * * * b\n5,35 * * * * c\n1-59/2 * * * * d\n", 4, 0),
    "the day fields": ("0 0 13 * 5 either\n0 0 */2 * 1 both\n0 0 1-7 * */2 mixed\n", 3, 0),
    "zones": ("CRON_TZ=America/New_York\n30 9 * * 1-5 open\nCRON_TZ=Asia/Tokyo\n0 9 * * * japan\n", 2, 0),
    "an unknown zone": ("CRON_TZ=Mars/Olympus\n0 9 * * * x\n", 1, 1),
    "the hour of the clock change": ("30 2 * * * fixed\n*/10 2 * * * stepped\n0 1-5 * * * hours\n15,45 1,2,3 * * * four\n", 4, 0),
    "tabs and spaces": ("  0\t3  *   *\t* \t spaced   out  \n", 1, 0),
    "mistakes": ("99 * * * * bad\n* * * *\n0 5 * * * good\nnonsense\n", 1, 3),
    "same program twice": ("0 1 * * * rsync -a /a /b\n0 2 * * * rsync -a /c /d\n0 3 * * * /usr/bin/rsync x y\n", 3, 0),
    "random delay": ("RANDOM_DELAY=30\n0 4 * * * update\n", 1, 1),
    "windows line ends": ("0 4 * * * update\r\n5 4 * * * more\r\n", 2, 0),
}  # fmt: skip

SYSTEM = """\
SHELL=/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin
17 *	* * *	root	cd / && run-parts --report /etc/cron.hourly
25 6	* * *	root	test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )
"""
