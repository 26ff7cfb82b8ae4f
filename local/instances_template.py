"""Write template-instances.yaml: template.yaml with the stream function on Lambda managed instances (decision 0264).

SAM takes no condition for where a function runs, and Lambda lets no function change it, so a parameter of one template
cannot say it: `make instances-template`, then `sam build --template template-instances.yaml`.
"""

import re
from pathlib import Path

from local.processes import ROOT
from local.template import TEMPLATE_PATH

INSTANCES_TEMPLATE_PATH = ROOT / "template-instances.yaml"
HEADER = "# Written by `make instances-template` from template.yaml. Change that file.\n"
PARAMETERS = """\
  StreamSubnets:
    Type: List<AWS::EC2::Subnet::Id>
    Description: >-
      Subnets of the instances, in several zones. From them, functions must reach DynamoDB, S3, KMS, Step Functions,
      CloudWatch Logs, X-Ray, and the key servers of tenants.
  StreamSecurityGroups:
    Type: List<AWS::EC2::SecurityGroup::Id>
    Description: Security groups of the instances. They need no inbound rule.
  StreamsPerEnvironment:
    Type: Number
    Default: 64
    MinValue: 1
    MaxValue: 1600
    Description: Requests that one process serves at once. It has one processor and 2 GB.
  StreamEnvironments:
    Type: Number
    Default: 40
    MinValue: 3
    Description: Maximum of processes. With StreamsPerEnvironment it limits the open streams.
  StreamVCpus:
    Type: Number
    Default: 60
    MinValue: 12
    Description: Maximum of processors of all instances, which limits what they cost.

"""
WHERE_IT_RUNS = """\
      MemorySize: 2048 # the least on managed instances
      CapacityProviderConfig:
        Arn: !GetAtt StreamInstances.Arn
        PerExecutionEnvironmentMaxConcurrency: !Ref StreamsPerEnvironment
        ExecutionEnvironmentMemoryGiBPerVCpu: 2 # one processor: a Python process uses no second one
      FunctionScalingConfig: {MinExecutionEnvironments: 3, MaxExecutionEnvironments: !Ref StreamEnvironments}
      DeploymentPreference: {Enabled: false} # two versions at once would take twice the instances
"""
RESOURCES = """\
  StreamInstances: # no parameter of the functions: what runs on it must be mutually trusted
    Type: AWS::Serverless::CapacityProvider
    Properties:
      VpcConfig: {SubnetIds: !Ref StreamSubnets, SecurityGroupIds: !Ref StreamSecurityGroups}
      OperatorRole: !GetAtt StreamInstancesRole.Arn
      InstanceRequirements: {Architectures: [arm64]}
      ScalingConfig: {MaxVCpuCount: !Ref StreamVCpus}

  StreamInstancesRole: # AWS defines what Lambda needs to run instances, and changes it
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement: [{Effect: Allow, Principal: {Service: lambda.amazonaws.com}, Action: sts:AssumeRole}]
      ManagedPolicyArns: [!Sub "arn:${AWS::Partition}:iam::aws:policy/AWSLambdaManagedEC2ResourceOperator"]

"""
STREAM_FUNCTION = re.compile(r"^  StreamFunction:\n.*?(?=^  \w)", re.MULTILINE | re.DOTALL)
UNUSED = (
    re.compile(r"^  StreamConcurrency:\n(?:    .*\n)+", re.MULTILINE),
    re.compile(r"^  CapStreams: .*\n", re.MULTILINE),
)
"""What is about the reserved concurrency of the stream function, which managed instances do not take."""


def render_instances_template(text: str) -> str:
    """Change the text of template.yaml.

    Raises:
        ValueError: A place to change is not there, or there more than once.
    """
    (function,) = STREAM_FUNCTION.findall(text)
    text = text.replace(function, _move_to_instances(function) + RESOURCES)
    for pattern in UNUSED:
        text = _replace_once(pattern, "", text)
    text = _replace_once(re.compile(r"^Parameters:\n", re.MULTILINE), "Parameters:\n" + PARAMETERS, text)
    return HEADER + text


def _move_to_instances(function: str) -> str:
    """Give the function another name, because Lambda cannot move one that exists."""
    lines = (
        (
            r"^      FunctionName: !Sub \$\{AWS::StackName\}-stream\n",
            "      FunctionName: !Sub ${AWS::StackName}-streams\n",
        ),
        (r"^      MemorySize: \d+\n", WHERE_IT_RUNS),
        (r"^      ReservedConcurrentExecutions: .*\n", ""),
        (
            r'^(      VersionDescription: !Sub "Settings .*)"\n',
            r'\1 ${StreamsPerEnvironment} ${StreamEnvironments}"' + "\n",
        ),
    )
    for pattern, replacement in lines:
        function = _replace_once(re.compile(pattern, re.MULTILINE), replacement, function)
    return function


def _replace_once(pattern: re.Pattern[str], replacement: str, text: str) -> str:
    changed, count = pattern.subn(replacement, text)
    if count != 1:
        raise ValueError(f"{pattern.pattern!r} is in the template {count} times.")
    return changed


def main(template: Path = TEMPLATE_PATH, written: Path = INSTANCES_TEMPLATE_PATH) -> None:
    written.write_text(render_instances_template(template.read_text()))


if __name__ == "__main__":
    main()
