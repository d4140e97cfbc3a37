// When the kernel behind a view is gone for good. No single sign is given everywhere: JupyterLab's session says so,
// ipywidgets marks the view, and sending fails.

const GONE = ["restarting", "autorestarting", "terminating", "dead", "unknown"];

function onceGone(model, el, gone) {
  const session = model.widget_manager?.context?.sessionContext;
  const status = (_, now) => GONE.includes(now) && gone();
  const changed = () => gone();
  session?.statusChanged?.connect(status);
  session?.kernelChanged?.connect(changed);
  const watch = new MutationObserver(() => el.classList.contains("jupyter-widgets-disconnected") && gone());
  watch.observe(el, { attributes: true, attributeFilter: ["class"] });
  return () => {
    session?.statusChanged?.disconnect(status);
    session?.kernelChanged?.disconnect(changed);
    watch.disconnect();
  };
}
