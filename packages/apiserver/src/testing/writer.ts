/** A process that writes to a durable store and says what was acknowledged; to be killed by a test. */
import { openDurableStore } from "../storage/disk/durable-store.ts";

const store = await openDurableStore(process.argv[2] ?? "");
process.stdout.write("open\n");

async function write(writer: number): Promise<void> {
  for (let i = 0; ; i++) {
    const name = `w${writer}-${i}`;
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "n", uid: name } };
    store.commit([{ resource: "configmaps", namespace: "n", name, object }]);
    await store.durable();
    process.stdout.write(`${name}\n`);
  }
}

await Promise.all([0, 1, 2, 3].map(write));
