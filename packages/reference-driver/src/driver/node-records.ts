/**
 * With what arguments volumes were staged and published on a node: one JSON file. What is mounted is the
 * truth about whether they are. This file only holds the arguments, which distinguish a repeat from a call
 * that asks for something else, and identify a block volume, which leaves no mount when it is staged.
 *
 * Invariant: written before the machine is touched, and taken out after it is as it was. No secret is in it:
 * arguments are kept as digests.
 */
import { createHash } from "node:crypto";
import { type Host, KeyedLock } from "@longshore/runtime";

/** How a volume was published at one target path. */
export interface Publication {
  /** Digest of the arguments. */
  readonly arguments: string;
  readonly readOnly: boolean;
  /** The device refuses writes because it is attached so. */
  readonly isAttachedReadOnly: boolean;
  readonly isBlock: boolean;
  readonly isSingleWriter: boolean;
  /** The volume was made for this path, in this directory of ephemeral volumes, and is removed with it. */
  readonly ephemeralDir?: string;
}

/** How a volume was staged at one path. */
export interface Staging {
  /** Digest of the arguments. */
  readonly arguments: string;
  readonly isBlock: boolean;
  /** The disk that the node attached for it. */
  readonly diskId?: string;
}

/** What is known of one volume on the node, by path. */
export interface VolumeRecord {
  readonly stagings: Readonly<Record<string, Staging>>;
  readonly publications: Readonly<Record<string, Publication>>;
}

type Records = Readonly<Record<string, VolumeRecord>>;

/** The records of a node. */
export interface NodeRecords {
  /** Whether they outlive the process. */
  readonly isDurable: boolean;
  of(volumeId: string): Promise<VolumeRecord>;
  /** Stores what `change` makes of the volume's record; nothing is written when it is as it was. */
  update(volumeId: string, change: (record: VolumeRecord) => VolumeRecord): Promise<void>;
}

const empty: VolumeRecord = { stagings: {}, publications: {} };

/** Opens the records; they are read at the first question. @param path undefined: they live as long as the process */
export function nodeRecords(host: Host, path: string | undefined): NodeRecords {
  const lock = new KeyedLock();
  let records: Records | undefined;

  async function load(): Promise<Records> {
    if (records !== undefined) return records;
    const text = path === undefined ? undefined : await host.readFile(path);
    records = text === undefined ? {} : parse(text, path ?? "");
    return records;
  }

  return {
    isDurable: path !== undefined,
    of: async (volumeId) => (await lock.run("", load))[volumeId] ?? empty,
    update: (volumeId, change) =>
      lock.run("", async () => {
        const all = await load();
        const before = all[volumeId] ?? empty;
        const next = change(before);
        if (next === before) return;
        const { [volumeId]: _before, ...others } = all;
        const isEmpty = [next.stagings, next.publications].every((map) => Object.keys(map).length === 0);
        const changed = isEmpty ? others : { ...others, [volumeId]: next };
        if (path !== undefined) {
          await host.makeDirectory(path.slice(0, path.lastIndexOf("/")));
          await host.writeFileAtomic(path, `${JSON.stringify({ volumes: changed }, undefined, 1)}\n`);
        }
        // Only now: after a write that failed, memory and file must not differ.
        records = changed;
      }),
  };
}

function parse(text: string, path: string): Records {
  try {
    return (JSON.parse(text) as { readonly volumes: Records }).volumes;
  } catch (cause) {
    throw new Error(`${path} is damaged: remove it when no volume is in use on the node`, { cause });
  }
}

/** The record with this staging; the same object when it has it already. */
export function withStaging(record: VolumeRecord, path: string, staging: Staging): VolumeRecord {
  if (record.stagings[path]?.arguments === staging.arguments) return record;
  return { ...record, stagings: { ...record.stagings, [path]: staging } };
}

/** The record without the staging at the path. */
export function withoutStaging(record: VolumeRecord, path: string): VolumeRecord {
  if (record.stagings[path] === undefined) return record;
  const { [path]: _gone, ...stagings } = record.stagings;
  return { ...record, stagings };
}

/** The record with this publication; the same object when it has it already. */
export function withPublication(record: VolumeRecord, path: string, publication: Publication): VolumeRecord {
  if (record.publications[path]?.arguments === publication.arguments) return record;
  return { ...record, publications: { ...record.publications, [path]: publication } };
}

/** The record without the publication at the path. */
export function withoutPublication(record: VolumeRecord, path: string): VolumeRecord {
  if (record.publications[path] === undefined) return record;
  const { [path]: _gone, ...publications } = record.publications;
  return { ...record, publications };
}

/** Arguments as one short text to compare. Mount flags may be secret, so the text is a digest. */
export function digestOf(args: unknown): string {
  return createHash("sha256").update(JSON.stringify(args)).digest("hex").slice(0, 32);
}
