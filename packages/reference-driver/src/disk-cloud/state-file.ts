/**
 * The cloud's state on disk: one JSON file, replaced as a whole.
 *
 * Invariant: `state` equals what the file holds; a write that fails changes neither.
 */
import { type Host, KeyedLock } from "@longshore/runtime";
import { type CloudState, emptyState } from "./cloud-state.ts";

/** The file cannot be understood. */
export class CloudStateError extends Error {
  override readonly name = "CloudStateError";
}

/** The state and its file. */
export interface StateFile {
  readonly state: CloudState;
  /**
   * Stores `change(state)`; changes come one after the other, each sees the one before. `change` may
   * throw, or return the state as it is; then nothing is written.
   */
  update(change: (state: CloudState) => CloudState): Promise<void>;
}

/** Reads the file, or begins with nothing. @throws CloudStateError when the file is damaged */
export async function openStateFile(host: Host, path: string): Promise<StateFile> {
  const text = await host.readFile(path);
  let state = text === undefined ? emptyState : parseState(text, path);
  const lock = new KeyedLock();
  return {
    get state() {
      return state;
    },
    update: (change) =>
      lock.run(path, async () => {
        const next = change(state);
        if (next === state) return;
        await host.writeFileAtomic(path, `${JSON.stringify(next, undefined, 1)}\n`);
        state = next;
      }),
  };
}

function parseState(text: string, path: string): CloudState {
  const remedy = "restore it, or remove the directory to begin without disks";
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new CloudStateError(`the disk cloud's state ${path} is not JSON: ${remedy}`, { cause });
  }
  const state = value as Partial<CloudState> | null;
  if (state?.version !== 1 || typeof state.disks !== "object" || typeof state.instances !== "object") {
    throw new CloudStateError(`the disk cloud's state ${path} is not of version 1: ${remedy}`);
  }
  return state as CloudState;
}
