"""What Python gets in a run of the code interpreter: figures that a program shows become
plot_1.png, plot_2.png, ... among its files, since there is no screen. A program that does
not import matplotlib imports nothing because of it, and the source of none is touched."""


def _install():
    import os
    import sys
    from importlib.machinery import PathFinder

    data = "/mnt/data"
    saved = 0

    def save(figure):
        nonlocal saved
        while True:
            saved += 1
            name = os.path.join(data, "plot_%d.png" % saved)
            try:
                return figure.savefig(name, dpi=150)
            except (PermissionError, IsADirectoryError):
                if not os.path.lexists(name):
                    raise  # not because of what has that name already

    def on_matplotlib(matplotlib):
        import logging
        import warnings

        # No font of the host has every character, and a program can do nothing about it.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from ")
        logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
        if matplotlib.rcParams["savefig.dpi"] == "figure":
            matplotlib.rcParams["savefig.dpi"] = 150

    def on_figure(module):
        from functools import wraps
        from numbers import Real

        plain = module.Figure.savefig

        @wraps(plain)
        def savefig(self, *args, **kwargs):
            dpi = kwargs.get("dpi")
            if dpi is None:
                dpi = sys.modules["matplotlib"].rcParams["savefig.dpi"]
            if dpi == "figure":
                dpi = self.dpi
            if isinstance(dpi, Real) and dpi > 200:
                kwargs["dpi"] = 200
            return plain(self, *args, **kwargs)

        @wraps(module.Figure.show)
        def show(self, *args, **kwargs):
            save(self)
            if "matplotlib.pyplot" in sys.modules:
                sys.modules["matplotlib.pyplot"].close(self)

        module.Figure.savefig = savefig
        module.Figure.show = show

    def on_pyplot(pyplot):
        from functools import wraps

        @wraps(pyplot.show)
        def show(*args, **kwargs):
            for number in pyplot.get_fignums():
                save(pyplot.figure(number))
            pyplot.close("all")

        pyplot.show = show

    hooks = {
        "matplotlib": on_matplotlib,
        "matplotlib.figure": on_figure,
        "matplotlib.pyplot": on_pyplot,
    }

    class Loader:
        """The loader of a module, after which its hook runs."""

        def __init__(self, loader, hook):
            self.loader, self.hook = loader, hook

        def __getattr__(self, name):
            return getattr(self.loader, name)

        def create_module(self, spec):
            return self.loader.create_module(spec)

        def exec_module(self, module):
            module.__loader__ = module.__spec__.loader = self.loader
            self.loader.exec_module(module)
            try:
                self.hook(module)
            except Exception:
                pass  # a matplotlib that is not like those we know works as it is

    class Finder:
        """Finds what others find, and puts Loader around the loaders of hooks."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if name not in hooks:
                return None
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find and finder is not Finder else None
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = Loader(spec.loader, hooks[name])
                    return spec
            return None

    sys.meta_path.insert(0, Finder)

    # The host's own module of this name, which this one hides, works as well, and the
    # folder of this one is not on the program's path.
    here = os.path.dirname(__file__)
    sys.path[:] = [p for p in sys.path if p != here]
    if PathFinder.find_spec("sitecustomize") is not None:
        del sys.modules["sitecustomize"]
        import sitecustomize


_install()
del _install
