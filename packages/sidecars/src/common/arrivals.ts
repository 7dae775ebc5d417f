/** Waking a controller by objects that come after those that need them. */
import type { Informer, KubeObject, Source, Stored } from "@longshore/kube";

/**
 * Objects that arrive after the controller has subscribed, and changes that `changed` selects, wake the keys that
 * `keysOf` names. What is in the cache by then wakes nothing: the controller's own objects wake at that time anyway. One
 * that a later list brings does wake, as the watch may have missed it.
 */
export function arrivals<T extends KubeObject>(
  informer: Informer<T>,
  keysOf: (object: Stored<T>) => Iterable<string>,
  changed: (before: Stored<T>, after: Stored<T>) => boolean = () => false,
): Source {
  return {
    caches: [informer],
    subscribe({ wake }) {
      let isSubscribed = false;
      const end = informer.onChange({
        added(object, { initial }) {
          if (!isSubscribed) return;
          for (const key of keysOf(object)) wake(key, initial ? "background" : "fresh");
        },
        updated(before, after) {
          if (changed(before, after)) for (const key of keysOf(after)) wake(key);
        },
      });
      isSubscribed = true;
      return end;
    },
  };
}
