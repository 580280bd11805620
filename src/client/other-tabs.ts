/** Tells the other tabs of the browser that somebody has signed in or out: they share the session's cookies. */

export interface OtherTabs {
  tell(): void;
}

/** @param onChange called for what another tab tells, never for what this one does */
export function connectOtherTabs(baseUrl: string, onChange: (() => void) | undefined): OtherTabs {
  const open = () => openChannel(`music-gateway.session.${baseUrl}`);
  // Only for a page that listens: an open channel keeps a program outside of a browser running.
  const channel = onChange && open();
  channel?.addEventListener('message', () => onChange?.());
  return {
    tell() {
      const teller = channel ?? open();
      teller?.postMessage(null);
      if (teller !== channel) teller?.close();
    },
  };
}

/** Undefined if the browser blocks it together with cookies, as Firefox does: then nobody is signed in here. */
function openChannel(name: string): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(name);
  } catch {
    return undefined;
  }
}
