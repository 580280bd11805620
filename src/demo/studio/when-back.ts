/** Calls back when the page may have missed something: it is seen again, or back in the network. */

export function whenBack(window: Window, onBack: () => void): void {
  const { document } = window;
  window.addEventListener('online', onBack);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) onBack();
  });
}
