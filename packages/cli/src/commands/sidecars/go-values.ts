/** Values as Go's `flag` and `time` packages write and read them: what the manifests of the reference sidecars hold. */

/** The text of a flag cannot be read; the message says what would be right. */
export class FlagValueError extends Error {
  override readonly name = "FlagValueError";
}

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Milliseconds of a duration such as `15s`, `1m30s`, `1.5h` or `0` (Go `time.ParseDuration`). */
export function parseDuration(text: string): number {
  const match = /^([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/.exec(text);
  if (match === null) throw new FlagValueError("write a duration such as 15s, 1m30s or 500ms");
  let ms = 0;
  for (const [, amount = "", unit = ""] of (match[2] ?? "").matchAll(/([\d.]+)([a-zµμ]+)/g)) {
    ms += Number(amount) * (unitMs[unit] ?? 0);
  }
  return match[1] === "-" ? -ms : ms;
}

/** A duration as Go prints it: `15s`, `1m0s`, `1.5s`, `500ms`, `0s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (ms < 1000) return `${ms}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = (ms % 60_000) / 1000;
  return `${hours > 0 ? `${hours}h` : ""}${hours > 0 || minutes > 0 ? `${minutes}m` : ""}${seconds}s`;
}

const truths = new Set(["1", "t", "T", "TRUE", "true", "True"]);
const untruths = new Set(["0", "f", "F", "FALSE", "false", "False"]);

/** A boolean (Go `strconv.ParseBool`). */
export function parseBoolean(text: string): boolean {
  if (truths.has(text)) return true;
  if (untruths.has(text)) return false;
  throw new FlagValueError("write true or false");
}

/** A whole number (Go `strconv.ParseInt`, base 10 only). @param least the smallest that is allowed */
export function parseWhole(text: string, least: number): number {
  const value = Number(text);
  if (/^[+-]?\d+$/.test(text) && Number.isSafeInteger(value) && value >= least) return value;
  throw new FlagValueError(
    Number.isFinite(least) ? `write a whole number from ${least} on` : "write a whole number",
  );
}

/** A number (Go `strconv.ParseFloat`). */
export function parseNumber(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value)) return value;
  throw new FlagValueError("write a number");
}
