// Command training-operator runs the controllers and webhooks of kubeflow/training-operator v1.
//
// Its own main does the same, and waits for a certificate that a kubelet has mounted at a fixed
// path below /tmp. Here the certificate is the caller's: tls.crt and tls.key in --certificates.
package main

import (
	"flag"
	"os"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	controllers "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/webhooks"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func main() {
	port := flag.Int("webhook-port", 0, "port of the webhooks")
	probes := flag.String("health-probe-bind-address", "", "address of healthz and readyz")
	certificates := flag.String("certificates", "", "folder with tls.crt and tls.key")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*port, *probes, *certificates); err != nil {
		ctrl.Log.Error(err, "training-operator ended")
		os.Exit(1)
	}
}

func run(port int, probes, certificates string) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kubeflow.AddToScheme(scheme))
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	config.Config.MPIKubectlDeliveryImage = config.MPIKubectlDeliveryImageDefault
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: certificates})
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		WebhookServer:          server,
		HealthProbeBindAddress: probes,
	})
	if err != nil {
		return err
	}
	for name, setUp := range controllers.SupportedSchemeReconciler {
		if err := setUp(manager, common.GenNonGangSchedulerSetupFunc(), 1); err != nil {
			return err
		}
		if err := webhooks.SupportedSchemeWebhook[name](manager); err != nil {
			return err
		}
	}
	if err := manager.AddReadyzCheck("readyz", server.StartedChecker()); err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
