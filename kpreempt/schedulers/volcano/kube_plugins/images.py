"""Images as in 1.25 (``plugins/imagelocality``): only those of containers count."""

from __future__ import annotations

from kpreempt.model.pod import Container, Pod
from kpreempt.schedulers.kube.framework.interface import Handle
from kpreempt.schedulers.kube.plugins.image_locality import ImageLocality


class Images(ImageLocality):
    """Neither init containers nor image volumes count."""

    def __init__(self, handle: Handle) -> None:
        super().__init__({}, handle)

    def containers_of(self, pod: Pod) -> list[Container]:
        """The pod's containers."""
        return pod.spec.containers

    def images_of(self, pod: Pod) -> list[str]:
        """The images of its containers."""
        return [container.image for container in pod.spec.containers]
