// Runs inside Deno: imports the tool's code, calls it, and prints the result as one marked line.
// The code comes as a blob, because a static import from the main module may read files without permission.
const call = JSON.parse(CALL);
const { stringify } = JSON;
const encoder = new TextEncoder();
const { stdout, exit, errors } = Deno;

function print(answer) {
  let bytes = encoder.encode(`\n${call.marker}${answer}`);
  while (bytes.length) bytes = bytes.subarray(stdout.writeSync(bytes));
  exit(0);
}

function tidy(text) {
  return String(text ?? "")
    .replace(/blob:null\/[0-9a-f-]+/g, call.file)
    .replace(/\n\s+at [^\n]*\$deno\$stdin[^\n]*/g, "")
    .replace(/\n\s+at [^\n]*ext:[^\n]*/g, "");
}

function fail(kind, error) {
  const named = error instanceof Error ? error : new Error(String(error));
  const message = tidy(named.message).slice(0, 2000);
  print(stringify({ error: { kind, type: named.name, message, stack: tidy(named.stack).slice(0, 8000) } }));
}

function isDenial(error) {
  const denials = [errors.NotCapable, errors.PermissionDenied];
  return denials.some((kind) => error instanceof kind) || /Requires \w+ access to /.test(String(error?.message));
}

function kindOf(error, depth = 0) {
  if (isDenial(error)) return "permission";
  const inner = [error?.cause, ...(error instanceof AggregateError ? error.errors : [])].filter(Boolean);
  return depth < 20 && inner.some((each) => kindOf(each, depth + 1) === "permission") ? "permission" : "runtime";
}

try {
  const chosen = call.names.map((name) => `typeof ${name} === "function" ? ${name} : `).join("");
  const source = `${call.code}\n;export const $clew = ${chosen}undefined;`;
  const tool = await import(URL.createObjectURL(new Blob([source], { type: call.type })));
  const entry = tool.$clew ?? tool.default;
  if (typeof entry !== "function") fail("config", new Error(`clew: no function ${call.names.join(" or ")}`));
  const value = await entry(call.input, call.context);
  let answer;
  try {
    answer = stringify({ value: value ?? null });
  } catch (error) {
    fail("validation", error);
  }
  print(answer);
} catch (error) {
  fail(kindOf(error), error);
}
