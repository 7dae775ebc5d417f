/** Writes a base: every object as of one moment and the changes that are remembered, while the store goes on. */
import type { BaseContents, BaseRecord } from "../persistence.ts";
import { firstLine, frameKinds, frameOf } from "./frames.ts";
import { encodeRecord } from "./records.ts";
import { writeWholeFile } from "./write-whole-file.ts";

/** Size from which on a frame is written, in bytes: small, so that requests are answered in between. */
const pieceBytes = 128 * 1024;

/** Writes the file with the number `file`. Resolves to its length in bytes, when it is complete and durable. */
export async function writeBase(path: string, file: number, contents: BaseContents): Promise<number> {
  let length = 0;
  await writeWholeFile(path, async (append) => {
    const put = async (bytes: Uint8Array) => {
      length += bytes.length;
      await append(bytes);
    };
    const putRecords = async (kind: number, records: Iterable<BaseRecord>) => {
      let parts: Buffer[] = [];
      let size = 0;
      for (const record of records) {
        for (const part of encodeRecord(record, record.json?.())) {
          parts.push(part);
          size += part.length;
        }
        if (size < pieceBytes) continue;
        await put(frameOf(kind, file, parts));
        parts = [];
        size = 0;
      }
      if (parts.length > 0) await put(frameOf(kind, file, parts));
    };
    const { revision, forgotten, base, changes } = contents;
    await put(firstLine);
    await put(frameOf(frameKinds.about, file, [Buffer.from(JSON.stringify({ revision, forgotten }))]));
    await putRecords(frameKinds.base, base);
    await putRecords(frameKinds.records, changes);
    await put(frameOf(frameKinds.end, file));
  });
  return length;
}
