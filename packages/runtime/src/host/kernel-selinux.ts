/**
 * Labels the files of a tree for SELinux, by chcon(1), which enters no link and looks at each entry by the directory that it
 * has opened, whatever a workload moves meanwhile.
 */
import * as fs from "node:fs/promises";
import { HostError } from "./host.ts";
import { enforceFile } from "./host-paths.ts";
import { runTool } from "./node-programs.ts";

/** A large volume takes long; one that hangs does not keep its caller for ever. In milliseconds. */
const relabelTimeoutMs = 600_000;

/** What the labels are set with. */
export interface LabelTools {
  readonly hasSELinux: () => Promise<boolean>;
  readonly run: typeof runTool;
}

const systemTools: LabelTools = {
  hasSELinux: () =>
    fs.stat(enforceFile).then(
      () => true,
      () => false,
    ),
  run: runTool,
};

/** See `Host.relabelTree`. */
export async function relabelTree(path: string, label: string, tools = systemTools): Promise<void> {
  if (!(await tools.hasSELinux())) return;
  const chcon = (flags: readonly string[], okCodes: readonly number[]) =>
    tools.run("relabelTree", path, "chcon", [...flags, "-h", "--", label, path], {
      okCodes,
      timeoutMs: relabelTimeoutMs,
    });
  try {
    // The root alone first: where its file system takes no labels, nothing below it is looked at.
    await chcon([], [0]);
  } catch (error) {
    if (error instanceof HostError && ["ENOTSUP", "EROFS"].includes(error.code)) return;
    throw error;
  }
  // Code 1: an entry was refused, or has gone meanwhile.
  await chcon(["-R", "-P"], [0, 1]);
}
