/** What a process did to the files of a directory, and what it said meanwhile, as strace saw it. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";

/** One thing that happened. `begin` and `end` are places in the order of all; an operation has its effect between them. */
export type Operation = {
  readonly begin: number;
  readonly end: number;
} & (
  | { readonly type: "write"; readonly path: string; readonly at: number; readonly bytes: Buffer }
  | { readonly type: "truncate"; readonly path: string; readonly length: number }
  | { readonly type: "sync"; readonly path: string }
  | { readonly type: "create" | "remove" | "mkdir"; readonly path: string }
  | { readonly type: "rename" | "link"; readonly path: string; readonly to: string }
  | { readonly type: "said"; readonly text: string }
);

type Action = Operation extends infer O ? (O extends Operation ? Omit<O, "begin" | "end"> : never) : never;

const calls =
  "open,openat,creat,close,dup,dup2,dup3,write,writev,pwrite64,pwritev,pwritev2,truncate,ftruncate,fallocate,fsync,fdatasync,sync_file_range,msync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,mmap,io_uring_setup";

/** Why nothing can be recorded here; undefined when it can. */
export function whyNotRecordable(): string | undefined {
  const { error, status } = spawnSync("strace", ["-f", "-e", "trace=none", "true"]);
  if (error !== undefined) return "strace is not installed";
  return status === 0 ? undefined : "strace may not trace processes here";
}

/** Runs a program under strace. Returns the trace. */
export function record(command: readonly string[], traceFile: string): string {
  const flags = [
    "-f",
    "-y",
    "-xx",
    "-s",
    "8000000",
    "--seccomp-bpf",
    "-e",
    `trace=${calls}`,
    "-o",
    traceFile,
  ];
  const { error } = spawnSync("strace", [...flags, ...command], {
    stdio: ["ignore", "ignore", "inherit"],
    timeout: 60_000,
  });
  if (error !== undefined) throw error;
  return readFileSync(traceFile, "latin1");
}

/**
 * The operations on what is under `directory`, in the order of their effects: a sync has its when it ends, anything else
 * may have its as soon as it begins. @throws Error for a call that the model does not know
 */
export function operationsOf(trace: string, directory: string): Operation[] {
  const operations: Operation[] = [];
  const begun = new Map<string, { readonly line: number; readonly text: string }>();
  const offsets = new Map<string, number>();
  trace.split("\n").forEach((text, line) => {
    const [, thread = "", rest = ""] = /^(\d+) +(.*)$/.exec(text) ?? [];
    if (rest.endsWith("<unfinished ...>")) {
      begun.set(thread, { line, text: rest.slice(0, -"<unfinished ...>".length) });
      return;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest);
    const start = resumed === null ? undefined : begun.get(thread);
    const whole = resumed === null ? rest : `${start?.text ?? ""}${resumed[1]}`;
    const [, call = "", args = "", result = ""] = /^(\w+)\((.*)\) += (.*)$/.exec(whole) ?? [];
    if (call === "" || result.startsWith("-1")) return;
    for (const action of actionsOf(call, args, result, offsets)) {
      const isOurs =
        action.type === "said" || action.path.startsWith(directory) || dirname(directory) === action.path;
      if (isOurs) operations.push({ ...action, begin: start?.line ?? line, end: line } as Operation);
    }
  });
  const effect = (o: Operation) => (o.type === "sync" ? o.end : o.begin);
  return operations.sort((a, b) => effect(a) - effect(b));
}

function actionsOf(call: string, args: string, result: string, offsets: Map<string, number>): Action[] {
  const texts = [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map((m) => unhex(m[1] ?? ""));
  const path = texts[0]?.toString() ?? "";
  const [, fd = "", named = ""] = /^(\d+)<([^>]*)>/.exec(args) ?? [];
  const file = unhex(named).toString();
  const numbers = args.split(", ").map(Number);
  switch (call) {
    case "open":
    case "openat":
    case "creat": {
      offsets.set(result, 0);
      if (/O_SYNC|O_DSYNC|O_DIRECT\b|O_APPEND/.test(args) && path.includes("/objects/"))
        throw unknown(call, args);
      const made: Action[] = args.includes("O_CREAT") ? [{ type: "create", path }] : [];
      return args.includes("O_TRUNC") ? [...made, { type: "truncate", path, length: 0 }] : made;
    }
    case "write": {
      const bytes = (texts[0] ?? Buffer.alloc(0)).subarray(0, Number(result));
      if (fd === "1") return [{ type: "said", text: bytes.toString() }];
      const opened = `${fd}<${named}>`;
      const at = offsets.get(opened) ?? 0;
      offsets.set(opened, at + bytes.length);
      return [{ type: "write", path: file, at, bytes }];
    }
    case "pwrite64": {
      const bytes = (texts[0] ?? Buffer.alloc(0)).subarray(0, Number(result));
      return [{ type: "write", path: file, at: numbers.at(-1) ?? 0, bytes }];
    }
    case "ftruncate":
      return [{ type: "truncate", path: file, length: numbers.at(-1) ?? 0 }];
    case "fsync":
    case "fdatasync":
      return [{ type: "sync", path: file }];
    case "rename":
    case "link":
      return [{ type: call, path, to: texts[1]?.toString() ?? "" }];
    case "unlink":
      return [{ type: "remove", path }];
    case "mkdir":
      return [{ type: "mkdir", path }];
    case "close":
      return [];
    case "mmap":
      // Memory that is written to the file behind our back could not be recorded.
      if (args.includes("MAP_SHARED") && args.includes("PROT_WRITE") && unhex(args).includes("/objects/")) {
        throw unknown(call, args);
      }
      return [];
    default:
      if (unhex(args).includes("/objects/")) throw unknown(call, args);
      return [];
  }
}

function unknown(call: string, args: string): Error {
  return new Error(`the model of the disk does not know ${call}(${unhex(args).toString().slice(0, 200)})`);
}

/** Bytes as strace's -xx shows them; what is not shown so is passed over. */
function unhex(text: string): Buffer {
  return Buffer.from(
    text.replace(/\\x|[^0-9a-f\\x]/g, (part) => (part === "\\x" ? "" : "")),
    "hex",
  );
}
