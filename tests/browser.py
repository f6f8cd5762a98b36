"""A real browser without a screen (Qt's Chromium): loads a page and reports what is shown; a program of its own.

``python browser.py PAGE WIDTH SCHEME PICTURE`` prints one JSON object: console messages, requests that leave the file,
document width, and the size of every figure as it is laid out.
"""

from __future__ import annotations

import json
import os
import sys

LAID_OUT = """
JSON.stringify({
  wide: document.documentElement.scrollWidth,
  high: document.documentElement.scrollHeight,
  dark: window.matchMedia('(prefers-color-scheme: dark)').matches,
  paper: getComputedStyle(document.body).backgroundColor,
  figures: [...document.querySelectorAll('figure')].map(f => {
    const shown = [...f.querySelectorAll('svg, img')].map(i => i.getBoundingClientRect()).filter(b => b.width > 0);
    return shown.map(b => [Math.round(b.width), Math.round(b.height)]);
  }),
})
"""


def main(path: str, width: str, scheme: str, picture: str) -> int:
    """Load the page, measure it, and save what the first screen shows."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ.setdefault("QTWEBENGINE_DISABLE_SANDBOX", "1")
    dark_or_light = {"dark": 0, "light": 1}[scheme]
    os.environ["QTWEBENGINE_CHROMIUM_FLAGS"] = f"--blink-settings=preferredColorScheme={dark_or_light}"
    from PySide6.QtCore import QTimer, QUrl
    from PySide6.QtWebEngineCore import QWebEnginePage, QWebEngineUrlRequestInterceptor
    from PySide6.QtWebEngineWidgets import QWebEngineView
    from PySide6.QtWidgets import QApplication

    result: dict[str, object] = {"console": [], "requests": []}

    class Page(QWebEnginePage):
        def javaScriptConsoleMessage(self, level, message, line, source):
            result["console"].append(message)

    class Requests(QWebEngineUrlRequestInterceptor):
        def interceptRequest(self, info):
            if info.requestUrl().scheme() not in ("file", "data"):
                result["requests"].append(info.requestUrl().toString())

    application = QApplication([sys.argv[0]])
    view = QWebEngineView()
    page, requests = Page(view), Requests()
    page.profile().setUrlRequestInterceptor(requests)
    view.setPage(page)
    view.resize(int(width), 900)
    view.show()

    def finish(answer):
        result.update(json.loads(answer))
        view.grab().save(picture)
        print(json.dumps(result))
        application.quit()

    view.loadFinished.connect(
        lambda loaded: QTimer.singleShot(800, lambda: page.runJavaScript(LAID_OUT, finish)) if loaded else None
    )
    view.load(QUrl.fromLocalFile(path))
    QTimer.singleShot(40_000, application.quit)
    application.exec()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
