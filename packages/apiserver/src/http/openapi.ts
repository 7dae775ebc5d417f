/** `/openapi/v2` and `/openapi/v3`: documents in JSON or in protobuf, made when first requested. */
import type { KindTable } from "../api/kind-table.ts";
import { documentV2, documentV3 } from "../openapi/documents.ts";
import { protobufV2 } from "../openapi/protobuf-v2.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { type CachedDocument, cachedDocument } from "./cached-documents.ts";
import { gitVersionOf, groupsOf, versionsOf } from "./discovery.ts";

/** What the reference answers: the real name of the type has an `@`, which newer clients cannot parse. */
const protobufType = "application/octet-stream";

/** The release that documents name: without what we put behind it. */
function releaseOf(version: EmulatedVersion): string {
  return gitVersionOf(version).replace(/[+].*/, "");
}

/** `GET /openapi/v2` in the form that `accept` asks for. */
export function openApiV2(
  kinds: KindTable,
  version: EmulatedVersion,
  accept: string | undefined,
): CachedDocument {
  // JSON is declared as text by the reference up to 1.22 or so; clients rely on neither.
  if (accept?.includes("proto-openapi.spec.v2") === true) {
    return cachedDocument(kinds, "openapi v2 protobuf", () => ({
      content: protobufV2(documentV2(kinds.all(), version, releaseOf(version))),
      type: protobufType,
    }));
  }
  return cachedDocument(kinds, "openapi v2", () => ({
    content: JSON.stringify(documentV2(kinds.all(), version, releaseOf(version))),
    type: version.has("openapiV3") ? "application/json" : "text/plain; charset=utf-8",
  }));
}

/** `GET /openapi/v3`: where the documents of the group versions are, with the tags of what they hold now. */
export function openApiV3Index(kinds: KindTable, version: EmulatedVersion): CachedDocument {
  return cachedDocument(kinds, "openapi v3", () => {
    const paths: Record<string, { readonly serverRelativeURL: string }> = {};
    for (const group of groupsOf(kinds)) {
      for (const served of versionsOf(kinds, group)) {
        const path = group === "" ? `api/${served}` : `apis/${group}/${served}`;
        const hash = openApiV3(kinds, version, group, served)?.hash ?? "";
        paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` };
      }
    }
    return { content: JSON.stringify({ paths }), type: "application/json" };
  });
}

/** `GET /openapi/v3/api/VERSION` or `/openapi/v3/apis/GROUP/VERSION`; undefined when that is not served. */
export function openApiV3(
  kinds: KindTable,
  version: EmulatedVersion,
  group: string,
  of: string,
): CachedDocument | undefined {
  if (!versionsOf(kinds, group).includes(of)) return undefined;
  return cachedDocument(kinds, `openapi v3 ${group}/${of}`, () => ({
    content: JSON.stringify(documentV3(kinds.all(), group, of, version, releaseOf(version))),
    type: "application/json",
  }));
}
