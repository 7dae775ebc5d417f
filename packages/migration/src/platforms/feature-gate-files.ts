/**
 * Feature gates in the files of a node that kubeadm has set up: the kubelet's configuration and the manifests of static pods. Lines are
 * changed where they stand, so that comments and the order of everything else are kept; the result is read again and compared with
 * what it should be. Pure. Source: kubelet.config.k8s.io/v1beta1 KubeletConfiguration; kubeadm's static pod manifests.
 */
import { isDeepStrictEqual } from "node:util";
import { load } from "js-yaml";
import type { GateValues } from "../crossing/platform.ts";

/** A file that cannot be understood, or cannot be changed line by line. */
export class NodeFileError extends Error {
  override readonly name = "NodeFileError";
}

type Members = Readonly<Record<string, unknown>>;

const gatesFlag = "--feature-gates=";
/** As strconv.ParseBool of Go reads them. */
const onWords: ReadonlySet<string> = new Set(["1", "t", "T", "true", "TRUE", "True"]);
const offWords: ReadonlySet<string> = new Set(["0", "f", "F", "false", "FALSE", "False"]);
const topLevelKey = /^featureGates:\s*(#.*)?$/;

/** The gates that a kubelet's configuration sets. @throws NodeFileError */
export function kubeletConfigGates(text: string): GateValues {
  const gates = parsed(text).featureGates;
  if (gates === undefined || gates === null) return {};
  if (isMembers(gates) && Object.values(gates).every((value) => typeof value === "boolean")) {
    return gates as GateValues;
  }
  throw new NodeFileError("featureGates: it is no map of names to true or false");
}

/** The configuration with these gates over its others; the same text when it has them. @throws NodeFileError */
export function withKubeletGates(text: string, values: GateValues): string {
  const before = kubeletConfigGates(text);
  if (includesAll(before, values)) return text;
  const lines = text.split("\n");
  const at = lines.findIndex((line) => topLevelKey.test(line));
  const wanted = { ...before, ...values };
  const changed = at >= 0 ? withBlock(lines, at, values) : withNewBlock(text, lines, wanted);
  const expected = { ...parsed(text), featureGates: wanted };
  return checked(changed.join("\n"), expected, "featureGates: write it as a map with one gate a line");
}

/** The values in the block whose key is at `at`. */
function withBlock(lines: readonly string[], at: number, values: GateValues): string[] {
  const after = lines.slice(at + 1);
  const length = after.findIndex((line) => /^[^\s#]/.test(line));
  const block = length < 0 ? after : after.slice(0, length);
  const rest = length < 0 ? [] : after.slice(length);
  const indent =
    block.map((line) => /^(\s+)[^\s#]/.exec(line)?.[1]).find((found) => found !== undefined) ?? "  ";
  const left = new Map(Object.entries(values));
  const changed = block.map((line) => {
    const [, head = "", gate = "", tail = ""] = /^(\s+["']?(\w+)["']?:\s*)\S+(.*)$/.exec(line) ?? [];
    const value = left.get(gate);
    if (value === undefined) return line;
    left.delete(gate);
    return `${head}${value}${tail}`;
  });
  const added = [...left].map(([gate, value]) => `${indent}${gate}: ${value}`);
  return [...lines.slice(0, at + 1), ...added, ...changed, ...rest];
}

/** Where there is no block: in place of a map on one line, or at the end. */
function withNewBlock(text: string, lines: readonly string[], wanted: GateValues): string[] {
  const block = ["featureGates:", ...Object.entries(wanted).map(([gate, value]) => `  ${gate}: ${value}`)];
  const inline = lines.findIndex((line) => /^featureGates:/.test(line));
  if (inline >= 0) return [...lines.slice(0, inline), ...block, ...lines.slice(inline + 1)];
  const kept = text.endsWith("\n") ? lines.slice(0, -1) : lines;
  return [...kept, ...block, ""];
}

/** The gates that the flag in a static pod's command sets. @throws NodeFileError */
export function manifestGates(text: string): GateValues {
  return commandGates(commandOf(parsed(text)));
}

/** The gates that a command line sets. @throws NodeFileError */
export function commandGates(command: readonly string[]): GateValues {
  const given =
    command
      .filter((word) => word.startsWith(gatesFlag))
      .at(-1)
      ?.slice(gatesFlag.length) ?? "";
  const entries = given.split(",").filter((entry) => entry !== "");
  return Object.fromEntries(
    entries.map((entry) => {
      const [gate = "", value = ""] = entry.split("=");
      const isOn = onWords.has(value);
      if (!isOn && !offWords.has(value)) {
        throw new NodeFileError(`feature-gates: "${entry}" is not a gate with true or false`);
      }
      return [gate, isOn];
    }),
  );
}

/** The manifest with these gates over its others; the same text when it has them. @throws NodeFileError */
export function withManifestGates(text: string, values: GateValues): string {
  const manifest = parsed(text);
  const command = commandOf(manifest);
  const before = commandGates(command);
  if (includesAll(before, values)) return text;
  const wanted = { ...before, ...values };
  const flag =
    gatesFlag +
    Object.entries(wanted)
      .map(([gate, value]) => `${gate}=${value}`)
      .join(",");
  const lines = text.split("\n");
  const at = lines.findLastIndex((line) => /^\s*-\s+["']?--feature-gates=/.test(line));
  const old = command.findLastIndex((word) => word.startsWith(gatesFlag));
  const changedCommand = old >= 0 ? command.with(old, flag) : command.toSpliced(1, 0, flag);
  const remedy = "spec.containers[0].command: write it with one argument a line, the program first";
  if (old >= 0 !== at >= 0) throw new NodeFileError(remedy);
  const changed = at >= 0 ? withLine(lines, at, flag) : withAddedLine(lines, command[0] ?? "", flag, remedy);
  return checked(changed.join("\n"), withCommand(manifest, changedCommand), remedy);
}

function withLine(lines: readonly string[], at: number, flag: string): string[] {
  const line = lines[at] ?? "";
  const [, head = "", comment = ""] =
    /^(\s*-\s+)["']?--feature-gates=[^\s"']*["']?(\s*(?:#.*)?)$/.exec(line) ?? [];
  return lines.map((other, index) => (index === at ? `${head}${flag}${comment}` : other));
}

function withAddedLine(lines: readonly string[], program: string, flag: string, remedy: string): string[] {
  const at = lines.findIndex((line) => /^\s*-\s+(\S+)/.exec(line)?.[1] === program);
  if (at < 0) throw new NodeFileError(remedy);
  const indent = /^\s*-\s+/.exec(lines[at] ?? "")?.[0] ?? "- ";
  return [...lines.slice(0, at + 1), `${indent}${flag}`, ...lines.slice(at + 1)];
}

interface Container {
  readonly command?: readonly string[];
}

function containersOf(manifest: Members): readonly Container[] {
  const containers = (manifest.spec as { readonly containers?: unknown } | undefined | null)?.containers;
  return Array.isArray(containers) ? (containers as Container[]) : [];
}

function commandOf(manifest: Members): readonly string[] {
  const command: unknown = containersOf(manifest)[0]?.command;
  if (Array.isArray(command) && command.length > 0 && command.every((word) => typeof word === "string"))
    return command;
  throw new NodeFileError("spec.containers[0].command: there is none");
}

function withCommand(manifest: Members, command: readonly string[]): Members {
  const [first, ...others] = containersOf(manifest);
  const containers = [{ ...first, command }, ...others];
  return { ...manifest, spec: { ...(manifest.spec as Members), containers } };
}

function includesAll(values: GateValues, wanted: GateValues): boolean {
  return Object.entries(wanted).every(([gate, value]) => values[gate] === value);
}

function checked(text: string, expected: Members, remedy: string): string {
  let found: unknown;
  try {
    found = load(text);
  } catch (error) {
    throw new NodeFileError(remedy, { cause: error });
  }
  if (isDeepStrictEqual(found, expected)) return text;
  throw new NodeFileError(remedy);
}

function parsed(text: string): Members {
  let value: unknown;
  try {
    value = load(text);
  } catch (error) {
    throw new NodeFileError("it is not YAML of one document", { cause: error });
  }
  if (isMembers(value)) return value;
  throw new NodeFileError("it is no map");
}

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);
