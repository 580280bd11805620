/** Calls back when the page may have missed something: it is seen again, or back in the network. */

export function whenBack(window: Window, onBack: () => void): void {
  const { document } = window;
  window.addEventListener('online', onBack);
  // The browser may have kept the whole page while the person was elsewhere.
  window.addEventListener('pageshow', ({ persisted }) => {
    if (persisted) onBack();
  });
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) onBack();
  });
}
