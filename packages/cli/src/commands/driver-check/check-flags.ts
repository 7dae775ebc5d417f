/** The flags of `longshore driver check` as options of the conformance suite. */
import type { ConformanceOptions, ConformanceReport, DriverSecrets } from "@longshore/conformance";
import { parseQuantity } from "@longshore/kube";
import { UsageError } from "../../exit.ts";
import { type FlagsOf, inFlags } from "../../field-flags.ts";
import { duration, wholeNumber } from "../../flags.ts";

/** The flags as commander parses them. */
export interface CheckFlags {
  readonly endpoint?: string;
  readonly controllerEndpoint?: string;
  readonly stagingDir?: string;
  readonly targetDir?: string;
  readonly timeout: string;
  readonly patience: string;
  readonly volumeSize: string;
  readonly expandSize?: string;
  readonly parameters?: readonly string[];
  readonly snapshotParameters?: readonly string[];
  readonly mutableParameters?: readonly string[];
  readonly accessType: "mount" | "block";
  readonly fsType?: string;
  readonly secrets?: string;
  readonly secondNode?: string;
  readonly fillNode?: boolean;
  readonly restartCmd?: string;
  readonly focus?: readonly string[];
  readonly skip?: readonly string[];
  readonly repeats: string;
  readonly parallel: string;
  readonly list?: boolean;
  readonly output: "table" | "json" | "junit";
  readonly outputFile?: string;
  readonly verbose?: boolean;
  readonly quiet?: boolean;
}

/** The flags of options that reports name. */
export const checkFields = {
  accessType: "--access-type",
  fillNode: "--fill-node",
  mutableParameters: "--mutable-parameters",
  restartDriver: "--restart-cmd",
  secondNodeId: "--second-node",
  secrets: "--secrets",
} satisfies FlagsOf<ConformanceOptions>;

/** The report with flags in place of options where it says why checks were skipped. */
export function reportInFlags(report: ConformanceReport): ConformanceReport {
  const results = report.results.map((result) =>
    result.outcome === "skipped" && result.message !== undefined
      ? { ...result, message: inFlags(result.message, checkFields) }
      : result,
  );
  return { ...report, results };
}

/** What the flags say by themselves; where directories are and how to restart is added by the command. */
export function suiteOptions(
  flags: CheckFlags,
  secrets: DriverSecrets,
): Omit<ConformanceOptions, "stagingDir" | "targetDir"> {
  if (flags.endpoint === undefined) {
    throw new UsageError("--endpoint is required: unix:///path/to/csi.sock, where the driver listens");
  }
  const volumeSizeBytes = bytes("--volume-size", flags.volumeSize);
  const expandSizeBytes =
    flags.expandSize === undefined ? volumeSizeBytes + 1024n ** 3n : bytes("--expand-size", flags.expandSize);
  if (expandSizeBytes <= volumeSizeBytes) {
    throw new UsageError(
      `--expand-size: ${flags.expandSize} must be more than --volume-size ${flags.volumeSize}`,
    );
  }
  return {
    endpoint: flags.endpoint,
    ...(flags.controllerEndpoint === undefined ? {} : { controllerEndpoint: flags.controllerEndpoint }),
    timeoutMs: duration("--timeout", flags.timeout),
    settleTimeoutMs: duration("--patience", flags.patience),
    volumeSizeBytes,
    expandSizeBytes,
    parameters: keyValues("--parameters", flags.parameters),
    snapshotParameters: keyValues("--snapshot-parameters", flags.snapshotParameters),
    mutableParameters: keyValues("--mutable-parameters", flags.mutableParameters),
    accessType: flags.accessType,
    ...(flags.fsType === undefined ? {} : { fsType: flags.fsType }),
    secrets,
    ...(flags.secondNode === undefined ? {} : { secondNodeId: flags.secondNode }),
    fillNode: flags.fillNode === true,
    repeats: wholeNumber("--repeats", flags.repeats, 2, 1000),
    parallel: wholeNumber("--parallel", flags.parallel, 2, 100),
    select: selection(flags),
  };
}

/** Which checks run: those that one of `--focus` matches, without those that one of `--skip` does. */
export function selection({ focus, skip }: Pick<CheckFlags, "focus" | "skip">): (id: string) => boolean {
  const wanted = focus?.map((text) => pattern("--focus", text));
  const unwanted = skip?.map((text) => pattern("--skip", text)) ?? [];
  return (id) =>
    (wanted === undefined || wanted.some((regex) => regex.test(id))) &&
    !unwanted.some((regex) => regex.test(id));
}

function pattern(flag: string, text: string): RegExp {
  try {
    return new RegExp(text, "u");
  } catch (error) {
    throw new UsageError(`${flag}: "${text}" is not a regular expression`, { cause: error });
  }
}

function bytes(flag: string, text: string): bigint {
  try {
    const size = BigInt(parseQuantity(text).toBytes());
    if (size > 0n && size < 2n ** 60n) return size;
  } catch {
    // Said below, in the words of the flag.
  }
  throw new UsageError(`${flag}: "${text}" is not a size: write bytes, or 512Mi, 1Gi, 10G`);
}

/** `key=value`, several with commas or by repeating the flag; a value may hold `=`. */
export function keyValues(flag: string, given: readonly string[] | undefined): Record<string, string> {
  const map: Record<string, string> = {};
  for (const pair of given?.flatMap((text) => text.split(",")) ?? []) {
    const at = pair.indexOf("=");
    if (at < 1) throw new UsageError(`${flag}: "${pair}" is not key=value`);
    map[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return map;
}

/** Words as a shell would split them: quotes hold words together, a backslash takes the next character as it is. */
export function commandWords(flag: string, text: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let i = 0; i < text.length; i++) {
    const char = text[i] ?? "";
    if (quote === "" && /\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (char === "\\" && quote !== "'" && i + 1 < text.length) {
      word = (word ?? "") + text[++i];
    } else if (quote === "" ? char === "'" || char === '"' : char === quote) {
      quote = quote === "" ? char : "";
      word ??= "";
    } else word = (word ?? "") + char;
  }
  if (quote !== "") throw new UsageError(`${flag}: the quote ${quote} is not closed`);
  if (word !== undefined) words.push(word);
  if (words.length === 0) throw new UsageError(`${flag}: the command is empty`);
  return words;
}
