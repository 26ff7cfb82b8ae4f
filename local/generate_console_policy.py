"""Write the Content-Security-Policy of the console on AWS in template.yaml, from the console's page: `make template`.

The policy names the digest of the import map in the page, which changes with each module that is added (decision 0277).
"""

import re

from local.front_door.console_files import ConsoleFiles, make_content_security_policy
from local.generate_template_routes import TEMPLATE_PATH

UPLOAD_SOURCES = "https://${Bucket}.s3.amazonaws.com https://${Bucket}.s3.${AWS::Region}.${AWS::URLSuffix}"
"""Where the page on AWS may put uploads; CloudFormation inserts the values."""
_POLICY = re.compile(
    r"^(?P<begin> +# the console's policy, written by `make template`\n).*?(?P<end>^ +# end of the console's policy\n)",
    re.MULTILINE | re.DOTALL,
)


def update_console_policy(template: str, console: ConsoleFiles | None = None) -> str:
    """Replace the policy between the markers by that of the page.

    Raises:
        FileNotFoundError: The console has no page.
    """
    page = (console or ConsoleFiles()).read("")
    if page is None:
        raise FileNotFoundError("console/index.html is missing.")
    policy = make_content_security_policy(page.content.decode(), upload_source=UPLOAD_SOURCES)
    line = f'            ContentSecurityPolicy: !Sub "{policy}"\n'
    return _POLICY.sub(lambda section: section["begin"] + line + section["end"], template)


if __name__ == "__main__":
    TEMPLATE_PATH.write_text(update_console_policy(TEMPLATE_PATH.read_text()))
