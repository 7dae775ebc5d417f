/** A provider of which zones fail: what is asked about a disk or a machine in one of them is not answered. */
import type { ProviderCloud } from "@longshore/reference-driver";
import { CloudError } from "@longshore/volumes";

/** @param isOut whether what has this name is in a zone that has failed: a disk, a machine or the zone itself */
export function zonalCloud(cloud: ProviderCloud, isOut: (name: string) => boolean): ProviderCloud {
  return new Proxy(cloud, {
    get(target, property) {
      const member = Reflect.get(target, property, target) as unknown;
      if (typeof member !== "function") return member;
      return async (...args: unknown[]) => {
        const name = args.flatMap(namesIn).find(isOut);
        if (name !== undefined)
          throw new CloudError("Unavailable", `${String(property)} ${name}: its zone does not answer`);
        return Reflect.apply(member, target, args);
      };
    },
  });
}

function namesIn(argument: unknown): string[] {
  if (typeof argument === "string") return [argument];
  if (typeof argument !== "object" || argument === null || !("zone" in argument)) return [];
  return typeof argument.zone === "string" ? [argument.zone] : [];
}
