/**
 * A process that writes to a durable store and acknowledges on its standard output; recorded, and killed, by a test.
 * What a commit holds follows from its revision alone, so that a test knows what any store must hold.
 */
import { writeSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { KubeObject } from "@longshore/kube";
import { openDurableStore } from "../../storage/disk/open-durable-store.ts";
import type { Change, Store } from "../../storage/store.ts";

/** Small, so that a short run has several bases. */
export const logBytesMin = 12_000;

/** The changes of the commit that becomes `revision`: one object, several, or removals of some. */
export function changesOf(revision: number, store: Store): readonly Change[] {
  const put = (resource: string, name: string, length: number): Change => ({
    resource,
    namespace: "n",
    name,
    object: {
      kind: "Thing",
      apiVersion: "v1",
      metadata: { name, namespace: "n", uid: `${name}-${revision}` },
      data: { revision: String(revision), text: "x".repeat(length) },
    } as KubeObject,
  });
  const length = (revision * 7919) % 700;
  const changes = [put("configmaps", `c${(revision * 31) % 37}`, length)];
  if (revision % 4 === 0) {
    changes.push(put("secrets", "pair-a", length), put("secrets", "pair-b", revision % 12 === 0 ? 9000 : 10));
  }
  const leaving = { resource: "configmaps", namespace: "n", name: `c${(revision * 31 + 11) % 37}` };
  if (revision % 3 === 0 && store.table("configmaps").get("n", leaving.name) !== undefined)
    changes.push(leaving);
  return changes;
}

async function write(store: Store, until: number): Promise<void> {
  while (store.revision < until) {
    const { revision } = store.commit(changesOf(store.revision + 1, store));
    await store.durable();
    writeSync(1, `ack ${revision}\n`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [, , directory = "", until = "0", writers = "1", end = ""] = process.argv;
  const store = await openDurableStore(directory, { logBytesMin, historyLimit: 20 });
  await Promise.all(Array.from({ length: Number(writers) }, () => write(store, Number(until))));
  if (end === "close") await store.close();
  process.kill(process.pid, "SIGKILL");
}
