/** Reads an inventory from files. */
import { foreignText } from "@longshore/runtime";
import type { ManifestInput } from "../convert/manifest-input.ts";
import { found } from "./assessment-finding.ts";
import type { Inventory } from "./inventory.ts";
import { InventoryBuilder } from "./inventory-builder.ts";
import { ManifestReader, type ObjectSink } from "./manifest-reader.ts";
import type { TemplatePath } from "./template-paths.ts";
import { withoutUnreadParts } from "./unread-parts.ts";

/** How a dump is read. */
export interface CollectManifestsOptions {
  /** When the dump was written, as far as it is known. */
  readonly now: Date;
  /** The dump has every Secret, with or without what is in them: one that is not there is missing in the cluster. */
  readonly checkSecrets?: boolean;
  /** Custom resources with templates of pods. */
  readonly templates?: readonly TemplatePath[];
  /** Is given a sentence for each 100 MB of an input that were read. */
  readonly onProgress?: (text: string) => void;
}

/**
 * Reads the inputs one after the other, an object at a time. A part that cannot be read is a gap of the inventory, and so
 * is a kind that the verdict needs and of which there is no object. Values of Secrets are not kept.
 * @throws what reading an input throws
 */
export async function collectManifests(
  inputs: readonly ManifestInput[],
  options: CollectManifestsOptions,
): Promise<Inventory> {
  const builder = new InventoryBuilder(options.templates);
  if (options.checkSecrets === true) builder.lookForSecrets();
  const reader = new ManifestReader(sinkOf(builder));
  for (const input of inputs) await reader.read(input, options.onProgress);
  noteMissingKinds(builder, reader.listed);
  return builder.build(options.now);
}

function noteMissingKinds(builder: InventoryBuilder, listed: ReadonlySet<string>): void {
  for (const kind of builder.kinds) {
    const { kind: name, plural, group } = kind.resource;
    if (builder.has(kind) || listed.has(name) || !kind.essential) continue;
    builder.unread.add(name);
    const remedy = `add the output of \`kubectl get ${group === "" ? plural : `${plural}.${group}`} -A -o json\``;
    builder.gaps.push(
      found("LS1002", { object: `kind ${name}`, evidence: `the input has no ${name}`, remedy }),
    );
  }
}

function sinkOf(builder: InventoryBuilder): ObjectSink {
  return {
    cut: withoutUnreadParts,
    object(object) {
      if (object.kind === "Secret") {
        builder.addSecret(object);
        return;
      }
      const kind = builder.kindOf(object);
      if (kind !== undefined) builder.add(kind, object);
    },
    gap(object, reason) {
      builder.gaps.push(found("LS1004", { object, evidence: foreignText(reason) }));
    },
  };
}
