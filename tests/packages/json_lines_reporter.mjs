// A reporter of `node --test`: one JSON object a line, for tests/packages/node_tests.py.
export default async function* report(source) {
  for await (const { type, data } of source) {
    if (type === "test:stderr" || type === "test:stdout") yield line({ output: data.message });
    if (type !== "test:pass" && type !== "test:fail") continue;
    const { error } = data.details ?? {};
    const reason = error?.cause?.stack ?? error?.stack ?? String(error ?? "");
    const isSkipped = data.skip !== undefined && data.skip !== false;
    yield line({ name: data.name, file: data.file ?? "", passed: type === "test:pass", skipped: isSkipped, reason });
  }
}

function line(value) {
  return `${JSON.stringify(value)}\n`;
}
