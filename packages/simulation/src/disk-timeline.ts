/**
 * Who held which disk when: follows the attachments and mounts of a simulated world, and what happened around them. What it
 * records is drawn by `timeline-page.ts`.
 */
import { pathOfMount, type VolumePath, type WorldView } from "./contract-watch.ts";
import type { TraceEvent } from "./trace.ts";

/** A time in which a node held a disk in one way. */
export interface DiskSpan {
  readonly diskId: string;
  readonly nodeName: string;
  /** Attached to the node, or mounted there by one of the paths. */
  readonly how: "attached" | `mounted ${VolumePath}`;
  readonly fromMs: number;
  /** Undefined: at the end of the run it still was. */
  readonly toMs: number | undefined;
}

/** Collects spans and events of one run. */
export class DiskTimeline {
  /** Everything that the trace says, but for calls that were slow or lost. */
  readonly events: TraceEvent[] = [];
  readonly #ended: DiskSpan[] = [];
  readonly #open = new Map<string, DiskSpan>();
  #endMs = 0;

  /** Looks at the world as it is at this time. */
  look(atMs: number, { attachments, mounts }: Pick<WorldView, "attachments" | "mounts">): void {
    this.#endMs = atMs;
    const now = new Set<string>();
    for (const { diskId, nodeName, devicePath } of attachments) {
      this.#hold(now, atMs, diskId, nodeName, "attached");
      for (const mount of mounts.get(nodeName) ?? []) {
        if (devicePath === "" || mount.source !== devicePath) continue;
        this.#hold(now, atMs, diskId, nodeName, `mounted ${pathOfMount(mount)}`);
      }
    }
    for (const [key, span] of this.#open) {
      if (now.has(key)) continue;
      this.#open.delete(key);
      this.#ended.push({ ...span, toMs: atMs });
    }
  }

  /** Remembers what happened. */
  note(event: TraceEvent): void {
    this.#endMs = Math.max(this.#endMs, event.atMs);
    if (event.kind !== "call") this.events.push(event);
  }

  /** When the run ended, in virtual milliseconds. */
  get endMs(): number {
    return this.#endMs;
  }

  /** All spans, in the order of their beginnings. */
  spans(): readonly DiskSpan[] {
    return [...this.#ended, ...this.#open.values()].sort((a, b) => a.fromMs - b.fromMs);
  }

  #hold(now: Set<string>, atMs: number, diskId: string, nodeName: string, how: DiskSpan["how"]): void {
    const key = `${diskId} ${nodeName} ${how}`;
    now.add(key);
    if (!this.#open.has(key)) this.#open.set(key, { diskId, nodeName, how, fromMs: atMs, toMs: undefined });
  }
}
